"""The bound in all its forms."""

from __future__ import annotations

from attcem.defences import Bound
from tests.defences.draws import SIGMA, TOKENS

COVS = ["diag", "channel", "gram"]
FORMS = [(cov, tokens) for cov in COVS for tokens in TOKENS if cov != "gram" or tokens in ("flat", "pooled")]


def made(cov, classes, latent=(4,), sigma=SIGMA):
    """Each class by itself, no attention."""
    defence = Bound(cov=cov)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    return defence
