"""Gates against their equations, number by number."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths import class_gate, excess, hinge, snr_gate, variance_threshold


def sigmoid(value):
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def softplus(value):
    return max(value, 0) + math.log1p(math.exp(-abs(value)))


@settings(max_examples=100)
@given(
    var=st.floats(0, 1e4),
    mu=st.floats(-100, 100),
    sigma=st.floats(1e-6, 2),
    tau=st.floats(0, 3),
    gamma=st.sampled_from([1e-6, 1e-2]),
    share=st.floats(0, 1),
    scale=st.floats(0.1, 20),
    shift=st.floats(-1, 1),
)
def test_equal_to_the_equations(var, mu, sigma, tau, gamma, share, scale, shift):
    theta = variance_threshold(sigma, tau, gamma)
    assert theta == pytest.approx(max(tau * sigma**2, 1e-8) + gamma, rel=1e-12)
    v, m, s = (torch.tensor([value], dtype=torch.double) for value in (var, mu, share))
    distance = math.log(var + gamma) - math.log(theta)
    found = {
        hinge(v, theta, gamma).item(): max(0.0, distance),
        excess(v, theta, gamma, scale, shift).item(): softplus(scale * (distance - shift)) / scale,
        snr_gate(m, v, scale, shift, 1e-3).item(): sigmoid(scale * (var / (mu**2 + 1e-3) - shift)),
        class_gate(s, scale, shift).item(): sigmoid(scale * (share - shift)),
    }
    for mine, truth in found.items():
        assert mine == pytest.approx(truth, rel=1e-9, abs=1e-9)


def test_gradients_reach_learned_scalars_and_stay_finite_on_constant_features():
    scalars = torch.tensor([1.0, 0.1, 10.0, 0.3, 10.0, 0.05], dtype=torch.double)
    beta, margin, kappa, t, a, b = (value.clone().requires_grad_() for value in scalars)
    var = torch.tensor([0.0, 0.02, 3.0], dtype=torch.double, requires_grad=True)
    mu = torch.tensor([0.0, 0.5, 1e-3], dtype=torch.double, requires_grad=True)
    share = torch.tensor([0.0, 0.1, 1.0], dtype=torch.double)
    inputs = (var, mu, beta, margin, kappa, t, a, b)

    def gated(var, mu, beta, margin, kappa, t, a, b):
        return class_gate(share, a, b) * snr_gate(mu, var, kappa, t, 1e-1) * excess(var, 0.05, 1e-2, beta, margin)

    assert torch.autograd.gradcheck(gated, inputs)
    for gradient in torch.autograd.grad(gated(*inputs).sum(), inputs):
        assert gradient.isfinite().all() and gradient.any()


def test_a_variance_below_the_threshold_feels_no_hinge():
    var = torch.tensor([0.01, 0.2], requires_grad=True)
    hinge(var, 0.1, 1e-6).sum().backward()
    assert var.grad[0] == 0 < var.grad[1]


def test_a_threshold_without_noise_is_refused_and_says_why():
    with pytest.raises(ValueError, match="every class would look too wide"):
        variance_threshold(0.0, 0.125, 1e-6)
