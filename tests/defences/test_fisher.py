"""Fisher information against the Jacobian, and a penalty that reaches the encoder through it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attcem.defences import Fisher, Noise
from attcem.defences.fisher import fisher_trace
from attcem.models import split
from attcem.train import fit
from attcem.train.gradients import one_pass
from attcem.types import Batch


def encoder() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(48, 5)).double()


def test_the_trace_is_that_of_the_jacobian_on_average():
    network, x = encoder(), torch.rand(3, 2, 4, 4, dtype=torch.double)
    slow = []
    for one in x:
        jacobian = torch.autograd.functional.jacobian(lambda image: network(image[None])[0], one)
        slow.append(sum(float(value) ** 2 for value in jacobian.flatten()) / 0.3**2)
    seen = x.clone().requires_grad_()
    found = fisher_trace(seen, network(seen), sigma=0.3, draws=4000)
    torch.testing.assert_close(found, torch.tensor(slow, dtype=torch.double), rtol=0.06, atol=0)


def test_the_penalty_is_half_the_log_of_one_plus_it():
    network, x = encoder(), torch.rand(3, 2, 4, 4, dtype=torch.double, requires_grad=True)
    defence = Fisher()
    defence.setup(latent=(5,), classes=3, sigma=0.3)
    torch.manual_seed(2)
    value = defence.penalty(Batch(x, torch.zeros(3, dtype=torch.long), network(x)))
    torch.manual_seed(2)
    trace = fisher_trace(x, network(x), 0.3, 1)
    torch.testing.assert_close(value, 0.5 * (1 + trace / 32).log().mean())


def test_what_is_not_finite_or_hangs_on_no_picture_is_nothing():
    defence = Fisher()
    defence.setup(latent=(5,), classes=3, sigma=0.3)
    x = torch.rand(2, 1, 2, 2)
    loose = torch.rand(2, 5, requires_grad=True)
    batch = Batch(x, torch.zeros(2, dtype=torch.long), loose)
    assert defence.penalty(batch).item() == 0 and "lost" not in batch.readings
    seen = x.clone().requires_grad_()
    broken = (seen.flatten(1) / 0).nan_to_num(nan=torch.inf) * seen.flatten(1)
    batch = Batch(seen, torch.zeros(2, dtype=torch.long), broken)
    assert defence.penalty(batch).item() == 0 and "lost" in batch.readings


def test_a_step_lowers_it_and_the_task_keeps_its_own_gradient():
    torch.manual_seed(0)
    model = split("vgg11_bn", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.05)
    guard = Noise(0.1) + Fisher(lam=1.0)
    guard.setup(latent=model.latent_shape, classes=4, sigma=guard.sigma)
    x, y = torch.rand(8, 1, 28, 28), torch.arange(8) % 4
    optimiser = torch.optim.SGD(model.parameters(), lr=0.02)
    values = []
    for _ in range(12):
        optimiser.zero_grad()
        values.append(one_pass(model, guard, x, y, lambda link: 5.0).penalties["fisher"])
        optimiser.step()
    assert sum(values[-3:]) < 0.8 * sum(values[:3])
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_training_with_it_leaves_an_encoder_that_responds_less(small):
    leaks = []
    for lam in (0.0, 3.0):
        torch.manual_seed(0)
        model, guard = split("vgg11_bn", data=small, cut=4, bottleneck=4, width=0.05), Noise(0.1) + Fisher(lam=lam)
        fit(model, guard, small, epochs=2, progress=False)
        x = small.validation[:64].pixels().requires_grad_()
        leaks.append(fisher_trace(x, model.encoder(x), 0.1, 8).mean().item())
    assert leaks[1] < 0.5 * leaks[0]


def test_it_refuses_to_estimate_from_nothing():
    with pytest.raises(ValueError, match="at least 1"):
        Fisher(draws=0)
