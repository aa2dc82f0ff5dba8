"""The Fisher bound: its trace is the exact one within its error, and it is never below its trace form."""

from __future__ import annotations

import pytest
import torch

from attcem.metrics.entropy import image_prior
from attcem.metrics.fisher import fisher_bound
from tests.metrics.channel import Channel


def test_the_trace_lies_within_its_error_of_the_exact_one():
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(5, 16, generator=generator), torch.rand(60, 1, 4, 4, generator=generator)
    sigma = 0.3

    def encode(x):
        return torch.tanh(3 * x.flatten(1) @ weight.T)

    jacobians = torch.func.vmap(torch.func.jacrev(lambda one: encode(one.unsqueeze(0)).squeeze(0)))(x)
    exact = jacobians.square().sum().item() / len(x) / sigma**2
    found = fisher_bound(encode, x, sigma, probes=8)
    assert abs(found["trace"] - exact) < 4 * found["trace_stderr"]
    assert found["trace_stderr"] < 0.3 * exact
    again = [fisher_bound(encode, x, sigma, probes=8, seed=seed)["trace"] for seed in range(1, 21)]
    assert sum(again) / 20 == pytest.approx(exact, rel=0.05)


def test_the_fisher_bound_is_never_below_its_trace_form():
    for seed in range(5):
        channel = Channel(seed, d=16, wide=8)
        x = channel.images()
        found = fisher_bound(channel.encode, x[:500], channel.sigma, prior=image_prior(x))
        assert found["mse"] >= 16 / (found["trace"] + found["prior_trace"]) - 1e-5
