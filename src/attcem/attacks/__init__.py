"""The table of attacks, and fixed suites of them: a new attack is its file and its line here."""

from dataclasses import replace

from attcem.attacks.base import Attack, Probe, Reconstruction
from attcem.attacks.baselines import BASELINES
from attcem.attacks.decoder import Decoder

__all__ = ["ATTACKS", "BASELINES", "PROBES", "SUITES", "Attack", "Probe", "Reconstruction"]

SMALL, MEDIUM, PUBLISHED = Decoder(32, 2), Decoder(64, 4), Decoder(64, 8)

ATTACKS: dict[str, Attack] = {
    "decoder_small": SMALL,
    "decoder_medium": MEDIUM,
    "decoder_res8": PUBLISHED,
    "decoder_large": Decoder(128, 8, attention=True),
    "decoder_ssim": replace(PUBLISHED, loss="mse_ssim"),
    "decoder_class": replace(MEDIUM, class_aware=True),
    "decoder_shifted": replace(MEDIUM, shifted=True),
    "decoder_pairs_100": replace(SMALL, pairs=100),
    "decoder_pairs_1000": replace(SMALL, pairs=1000),
    "decoder_repeat_4": replace(SMALL, repeats=4),
    "decoder_repeat_16": replace(SMALL, repeats=16),
    "decoder_repeat_64": replace(SMALL, repeats=64),
}

PROBES: dict[str, Probe] = {}

SUITES: dict[str, dict[str, Attack]] = {
    "smoke": {"decoder_small": replace(SMALL, cycle=50, doublings=0)},
    "glance": {"decoder_medium": replace(MEDIUM, cycle=320, doublings=1)},
    "demo": {
        "decoder_small": replace(SMALL, cycle=200, doublings=1),
        "decoder_medium": replace(MEDIUM, cycle=400, doublings=1),
    },
    "quick": {
        "decoder_small": replace(SMALL, doublings=1),
        "decoder_medium": replace(MEDIUM, doublings=2),
    },
    "standard": dict(ATTACKS),
}
"""Suite → its attacks with the effort it allows them."""
