"""Clustered penalties that are set up and fitted, and batches for them."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from attcem.defences.gmm import GMM
from tests.defences import draws

STATE = ["mu", "pi", "var", "count"]
LATENT = (2, 2, 3)
CLOSE = {"atol": 1e-9, "rtol": 1e-9}

every_form = pytest.mark.parametrize("form", ["hinge", "variance", "logdet"])
every_token = pytest.mark.parametrize("tokens", ["flat", "spatial", "pooled"])
example = partial(draws.example, latent=LATENT)


def made(classes=3, latent=LATENT, sigma=draws.SIGMA, fit=(), dtype=torch.double, **options):
    defence = GMM(**options)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    defence.to(dtype).review(fit)
    return defence


def fitted(dtype=torch.double, fit=60, **options):
    return made(fit=[example(fit, seed=2, dtype=dtype)], dtype=dtype, **options)
