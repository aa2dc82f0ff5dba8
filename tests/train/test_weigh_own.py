"""Parameters that shape what is released are trained like the encoder: on the task plus the weighted penalty."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import VIB, WEIGHTED, Defence, Guard, Noise
from attcem.models import split
from attcem.train.gradients import one_pass
from attcem.types import Batch
from tests.probes import Scaled, weighted_penalty


class Gain(Defence):
    """Scales what is released, and penalises the scale."""

    needs = frozenset({WEIGHTED})

    def __init__(self, lam=1.0):
        super().__init__()
        self.lam, self.asked = lam, 0

    def setup(self, *, latent, classes, sigma):
        self.gain = torch.nn.Parameter(torch.full(latent, 2.0))

    def release(self, z):
        return self.gain * z

    def penalty(self, batch):
        self.asked += 1
        return (self.gain * batch.z).square().mean()


def make(guard, seed=0, n=6):
    torch.manual_seed(seed)
    guard = Guard.of(guard)
    model = split("vgg11", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.05).double()
    guard.setup(latent=model.latent_shape, classes=4, sigma=guard.sigma)
    return model, guard.double(), torch.rand(n, 1, 28, 28, dtype=torch.double), torch.arange(n) % 4


def gradients(*modules):
    return [None if p.grad is None else p.grad.clone() for module in modules for p in module.parameters()]


@pytest.mark.parametrize("kind", [VIB, Gain])
@settings(max_examples=5)
@given(lam=st.floats(0.01, 20), w_lr=st.sampled_from([1.0, 0.02]), seed=st.integers(0, 99))
def test_every_gradient_is_that_of_the_task_plus_the_weighted_penalty(kind, lam, w_lr, seed):
    model, guard, x, y = make(Noise(0.2) + kind(lam=lam), seed)
    other_model, other_guard = copy.deepcopy(model), copy.deepcopy(guard)
    torch.manual_seed(1)
    one_pass(model, guard, x, y, lambda link: link.lam * w_lr)
    torch.manual_seed(1)
    z = other_model.encoder(x)
    task = F.cross_entropy(other_model.decoder(other_guard.release(z)), y)
    (task + w_lr * weighted_penalty(other_guard, Batch(x, y, z))).backward()
    for one, whole in zip(gradients(model, guard), gradients(other_model, other_guard), strict=True):
        torch.testing.assert_close(one, whole, atol=1e-10, rtol=1e-10)
        assert whole.any()


def test_while_the_weight_is_zero_the_task_alone_pulls_and_the_penalty_is_not_computed():
    model, guard, x, y = make(Gain())
    report = one_pass(model, guard, x, y, lambda link: 0.0)
    other_model, other_guard, x, y = make(Gain())
    F.cross_entropy(other_model.decoder(other_guard.release(other_model.encoder(x))), y).backward()
    assert guard.links[0].asked == 0 and report.penalties == {}
    for one, whole in zip(gradients(model, guard), gradients(other_model, other_guard), strict=True):
        torch.testing.assert_close(one, whole, atol=1e-10, rtol=1e-10)


def test_each_link_of_a_chain_keeps_its_own_way():
    model, guard, x, y = make(Gain(lam=7.0) + Scaled(lam=5.0))
    one_pass(model, guard, x, y, lambda link: link.lam)
    alone_model, alone, x, y = make(Scaled(lam=1.0))
    one_pass(alone_model, alone, x, y, lambda link: link.lam)
    scaled = next(link for link in guard.links if isinstance(link, Scaled))
    torch.testing.assert_close(scaled.gain.grad, alone.links[0].gain.grad)


def test_more_weight_on_the_bottleneck_leaves_more_noise_in_what_is_released():
    deviations = []
    for lam in (0.01, 10.0):
        model, guard, x, y = make(VIB(lam=lam), n=16)
        optimiser = torch.optim.SGD([*model.parameters(), *guard.parameters()], lr=0.05, momentum=0.9)
        for _ in range(25):
            optimiser.zero_grad()
            one_pass(model, guard, x, y, lambda link: link.lam)
            optimiser.step()
        with torch.no_grad():
            deviations.append(guard.release(torch.zeros(200, *model.latent_shape, dtype=torch.double)).std().item())
    assert deviations[1] > 2 * deviations[0]
