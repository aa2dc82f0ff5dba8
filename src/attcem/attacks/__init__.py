"""The table of attacks, and fixed suites of them: a new attack is its file and its line here."""

from dataclasses import replace

from attcem.attacks.base import Attack, Reconstruction
from attcem.attacks.baselines import BASELINES
from attcem.attacks.decoder import Decoder

__all__ = ["ATTACKS", "BASELINES", "SUITES", "Attack", "Reconstruction"]

SMALL, MEDIUM, LARGE = Decoder(channels=32, blocks=2), Decoder(channels=64, blocks=4), Decoder(channels=96, blocks=8)

ATTACKS: dict[str, Attack] = {
    "decoder_small": SMALL,
    "decoder_medium": MEDIUM,
    "decoder_large": LARGE,
}

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
        "decoder_large": replace(LARGE, cycle=300, doublings=1),
    },
    "standard": dict(ATTACKS),
}
"""Suite → its attacks with the effort it allows them."""
