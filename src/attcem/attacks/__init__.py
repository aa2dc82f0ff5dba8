"""The table of attacks, and the suites of them: a new attack is its file and its line here."""

from dataclasses import replace

from attcem.attacks.adversarial import AdversarialDecoder
from attcem.attacks.base import Attack, Probe, Reconstruction
from attcem.attacks.baselines import BASELINES
from attcem.attacks.decoder import Decoder
from attcem.attacks.generative import Generative
from attcem.attacks.linear import Linear
from attcem.attacks.optimise import Optimise
from attcem.attacks.probe_linear import LinearProbe
from attcem.attacks.probe_property import PropertyProbe
from attcem.attacks.reidentify import Reidentify
from attcem.attacks.substitute import Substitute
from attcem.attacks.suite import Suite
from attcem.attacks.untrained import Untrained

__all__ = [
    "ATTACKS",
    "BASELINES",
    "PROBES",
    "SUITES",
    "Attack",
    "Probe",
    "Reconstruction",
    "Suite",
]

SMALL, MEDIUM = Decoder(32, 2), Decoder(64, 4)
PUBLISHED, FEEDBACK = Decoder(64, 8, start=MEDIUM), replace(MEDIUM, feedback=True, start=MEDIUM)

ATTACKS: dict[str, Attack] = {
    "linear": Linear(),
    "decoder_small": SMALL,
    "decoder_medium": MEDIUM,
    "decoder_res8": PUBLISHED,
    "decoder_large": Decoder(64, 16, attention=True, start=PUBLISHED),
    "decoder_ssim": replace(MEDIUM, loss="mse_ssim", start=MEDIUM),
    "decoder_class": replace(MEDIUM, class_aware=True, start=MEDIUM),
    "decoder_feedback": FEEDBACK,
    "decoder_gan": AdversarialDecoder(start=MEDIUM),
    "decoder_shifted": replace(MEDIUM, shifted=True),
    "decoder_pairs_100": replace(SMALL, pairs=100),
    "decoder_pairs_1000": replace(SMALL, pairs=1000),
    "decoder_repeat_4": replace(SMALL, repeats=4),
    "decoder_repeat_16": replace(SMALL, repeats=16),
    "decoder_repeat_64": replace(SMALL, repeats=64),
    "optimise_adam": Optimise(solver="adam", start=FEEDBACK),
    "optimise_lbfgs": Optimise(solver="lbfgs", start=FEEDBACK, worthwhile=0.05),
    "untrained": Untrained(),
    "generative": Generative(start=MEDIUM),
    "substitute": Substitute(),
}

PROBES: dict[str, Probe] = {"linear": LinearProbe(), "property": PropertyProbe(), "reidentify": Reidentify()}

SECONDS, MINUTES = replace(SMALL, cycle=300, doublings=1), replace(MEDIUM, cycle=400, doublings=1)
HOUR = replace(MEDIUM, doublings=2)
"""The decoders that others start from, at the effort of `quick` and of `standard`."""

DEEPER, TOLD = (replace(decoder, start=HOUR, cycle=300, doublings=1) for decoder in (PUBLISHED, FEEDBACK))
"""The published size, and what the device answers, from where that one ends."""

YARDSTICK = Decoder(32, 2, cycle=400, doublings=1)

EVERY_SUITE = (
    Suite("none", 1, {}, seen=20_000),
    Suite("smoke", 1, {"decoder_small": replace(SMALL, cycle=50, doublings=0)}, seen=4_000),
    Suite("glance", 3, {"decoder_medium": replace(MEDIUM, cycle=300, doublings=1)}, seen=10_000),
    Suite(
        "demo",
        1,
        {
            "decoder_small": replace(SMALL, cycle=200, doublings=1),
            "decoder_medium": replace(MEDIUM, cycle=400, doublings=1),
        },
        seen=20_000,
    ),
    Suite(
        "quick",
        1,
        {
            "linear": Linear(),
            "decoder_small": SECONDS,
            "decoder_medium": MINUTES,
            "decoder_class": replace(SECONDS, class_aware=True, start=SECONDS, cycle=100),
            "decoder_repeat_16": replace(SECONDS, repeats=16),
            "optimise_adam": Optimise(images=32, solver="adam", steps=100, start=MINUTES),
        },
        probes=PROBES,
        theory=True,
        seen=60_000,
    ),
    Suite(
        "standard",
        2,
        {
            "linear": Linear(),
            "decoder_small": replace(SMALL, doublings=2),
            "decoder_medium": HOUR,
            "decoder_res8": DEEPER,
            "decoder_large": Decoder(64, 16, attention=True, start=DEEPER, cycle=150, doublings=1),
            "decoder_ssim": replace(MEDIUM, loss="mse_ssim", start=HOUR, cycle=300, doublings=1),
            "decoder_class": replace(MEDIUM, class_aware=True, start=HOUR, cycle=300, doublings=1),
            "decoder_feedback": TOLD,
            "decoder_gan": AdversarialDecoder(start=HOUR),
            "decoder_shifted": replace(MEDIUM, shifted=True, doublings=1),
            "decoder_pairs_100": replace(SMALL, pairs=100, doublings=1),
            "decoder_pairs_1000": replace(SMALL, pairs=1000, doublings=1),
            "decoder_repeat_4": replace(SMALL, repeats=4, doublings=1),
            "decoder_repeat_16": replace(SMALL, repeats=16, doublings=1),
            "decoder_repeat_64": replace(SMALL, repeats=64, doublings=1),
            "optimise_adam": Optimise(solver="adam", start=TOLD),
            "optimise_lbfgs": Optimise(solver="lbfgs", start=TOLD, worthwhile=0.05),
            "untrained": Untrained(),
            "generative": Generative(start=HOUR),
            "substitute": Substitute(),
        },
        probes=PROBES,
        theory=True,
        yardstick=YARDSTICK,
    ),
    Suite("full", 1, ATTACKS, probes=PROBES, theory=True, yardstick=YARDSTICK),
)

SUITES: dict[str, Suite] = {suite.name: suite for suite in EVERY_SUITE}
