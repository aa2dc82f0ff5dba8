"""The tables of attacks and of hostile servers, and the suites: a new one is its file and its line here."""

from dataclasses import replace

from attcem.attacks.adversarial import AdversarialDecoder
from attcem.attacks.base import Attack, Probe, Reconstruction
from attcem.attacks.baselines import BASELINES
from attcem.attacks.class_aware import ClassAware
from attcem.attacks.decoder import Decoder
from attcem.attacks.feedback import Feedback
from attcem.attacks.generative import Generative
from attcem.attacks.hijack import Hijack
from attcem.attacks.hostile import HostileServer
from attcem.attacks.identity import Identity
from attcem.attacks.linear import Linear
from attcem.attacks.optimise import Optimise
from attcem.attacks.probe_attributes import AttributeProbe
from attcem.attacks.probe_linear import LinearProbe
from attcem.attacks.probe_property import PropertyProbe
from attcem.attacks.refined import Refined
from attcem.attacks.same_picture import SamePicture
from attcem.attacks.simulate import Simulate
from attcem.attacks.substitute import Substitute
from attcem.attacks.suite import Suite
from attcem.attacks.untrained import Untrained
from attcem.attacks.variant import FewPairs, Repeated, ShiftedPublic

__all__ = [
    "ATTACKS",
    "BASELINES",
    "PROBES",
    "SERVERS",
    "SUITES",
    "Attack",
    "HostileServer",
    "Probe",
    "Reconstruction",
    "Suite",
]

SMALL, MEDIUM = Decoder(32, 2), Decoder(64, 4)
RES8 = Decoder(64, 8, start=MEDIUM)  # the published size

ATTACKS: dict[str, Attack] = {
    "linear": Linear(),
    "decoder_small": SMALL,
    "decoder_medium": MEDIUM,
    "decoder_res8": RES8,
    "decoder_large": Decoder(64, 16, attention=True, start=RES8),
    "decoder_ssim": replace(MEDIUM, loss="mse_ssim", start=MEDIUM),
    "decoder_class": ClassAware(MEDIUM),
    "decoder_feedback": Feedback(MEDIUM),
    "decoder_gan": AdversarialDecoder(start=MEDIUM),
    "decoder_refined": Refined(start=MEDIUM),
    "decoder_shifted": ShiftedPublic(MEDIUM),
    **{f"decoder_pairs_{pairs}": FewPairs(SMALL, pairs) for pairs in (100, 1000)},
    **{f"decoder_repeat_{times}": Repeated(SMALL, times) for times in (4, 16, 64)},
    "optimise_adam": Optimise(solver="adam", start=Feedback(MEDIUM)),
    "optimise_lbfgs": Optimise(solver="lbfgs", start=Feedback(MEDIUM), worthwhile=0.05),
    "untrained": Untrained(),
    "generative": Generative(start=MEDIUM),
    "substitute": Substitute(),
}

OF_ANY_DATA: dict[str, Probe] = {"linear": LinearProbe(), "property": PropertyProbe(), "same_picture": SamePicture()}
PROBES: dict[str, Probe] = OF_ANY_DATA | {"attributes": AttributeProbe(), "identity": Identity()}

SERVERS: dict[str, type[HostileServer]] = {"hijack": Hijack, "simulate": Simulate}
"""Who may hold the cloud half while clients train: `fit_clients(..., server=SERVERS[name](public images))`."""

QUICK_SMALL, QUICK_MEDIUM = replace(SMALL, cycle=300, doublings=1), replace(MEDIUM, cycle=400, doublings=1)
STANDARD_SMALL, STANDARD_MEDIUM = replace(SMALL, doublings=1), replace(MEDIUM, doublings=2)
STANDARD_RES8 = replace(RES8, start=STANDARD_MEDIUM, cycle=300, doublings=1)
STANDARD_FEEDBACK = Feedback(STANDARD_MEDIUM, cycle=300, doublings=1)
"""The decoders that others of `quick` and `standard` start from or wrap."""

YARDSTICK = Decoder(32, 2, cycle=400, doublings=1)
PATIENT = replace(MEDIUM, doublings=4, tolerance=0.05)  # goes on until a doubling gains less than 5 %

DEMO = {"decoder_small": replace(SMALL, cycle=200, doublings=1), "decoder_medium": QUICK_MEDIUM}
QUICK_OPTIMISE = Optimise(images=32, solver="adam", steps=100, start=QUICK_MEDIUM)
QUICK: dict[str, Attack] = {
    "linear": Linear(),
    "decoder_small": QUICK_SMALL,
    "decoder_medium": QUICK_MEDIUM,
    "decoder_class": ClassAware(QUICK_SMALL, cycle=100, doublings=1),
    "decoder_repeat_16": Repeated(QUICK_SMALL, 16),
    "optimise_adam": QUICK_OPTIMISE,
}
AFTER_PATIENCE = {"decoder_medium": PATIENT, "optimise_adam": replace(QUICK_OPTIMISE, start=PATIENT)}

STANDARD: dict[str, Attack] = ATTACKS | {
    "decoder_small": replace(SMALL, doublings=2),
    "decoder_medium": STANDARD_MEDIUM,
    "decoder_res8": STANDARD_RES8,
    "decoder_large": Decoder(64, 16, attention=True, start=STANDARD_RES8, cycle=150, doublings=1),
    "decoder_ssim": replace(MEDIUM, loss="mse_ssim", start=STANDARD_MEDIUM, cycle=300, doublings=1),
    "decoder_class": ClassAware(STANDARD_MEDIUM, cycle=300, doublings=1),
    "decoder_feedback": STANDARD_FEEDBACK,
    "decoder_gan": AdversarialDecoder(start=STANDARD_MEDIUM),
    "decoder_refined": Refined(start=STANDARD_MEDIUM),
    "decoder_shifted": ShiftedPublic(replace(MEDIUM, doublings=1)),
    **{f"decoder_pairs_{pairs}": FewPairs(STANDARD_SMALL, pairs) for pairs in (100, 1000)},
    **{f"decoder_repeat_{times}": Repeated(STANDARD_SMALL, times) for times in (4, 16, 64)},
    "optimise_adam": Optimise(solver="adam", start=STANDARD_FEEDBACK),
    "optimise_lbfgs": Optimise(solver="lbfgs", start=STANDARD_FEEDBACK, worthwhile=0.05),
    "generative": Generative(start=STANDARD_MEDIUM),
}

EVERY_SUITE = (
    Suite("none", 1, {}, seen=20_000),
    Suite("smoke", 3, {"decoder_small": replace(SMALL, cycle=50, doublings=0)}, seen=4_000),
    Suite("glance", 5, {"decoder_medium": replace(MEDIUM, cycle=300, doublings=1)}, seen=10_000),
    Suite("demo", 3, DEMO, seen=20_000),
    Suite("quick", 3, QUICK, probes=OF_ANY_DATA, theory=True, seen=60_000),
    Suite("patient", 1, QUICK | AFTER_PATIENCE, probes=OF_ANY_DATA, theory=True, seen=60_000),
    Suite("standard", 5, STANDARD, probes=PROBES, theory=True, yardstick=YARDSTICK),
    Suite("full", 4, ATTACKS, probes=PROBES, theory=True, yardstick=YARDSTICK),
)

SUITES: dict[str, Suite] = {suite.name: suite for suite in EVERY_SUITE}
