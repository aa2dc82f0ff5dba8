"""The reversed adversary: one backward pass serves both, and only the encoder feels the penalty's weight."""

import copy

import pytest
import torch

from attcem.defences import Guard, Noise, Reversed
from attcem.defences.reversed import log_error
from attcem.types import Batch
from tests.defences.test_arl import coarse_batch, same, state

SMALL = {"channels": 6, "blocks": 1}


def made(defence, latent=(1, 4, 4)):
    torch.manual_seed(0)
    defence.setup(latent=latent, classes=3, sigma=0.1)
    return defence


def slow(defence, z, x):
    """ℓ of the adversary as it is now, by its own forward pass."""
    seen = (z - defence.mean) / (defence.var + 1e-5).sqrt()
    return log_error(defence.adversary.painter(seen, x.shape[1:]), x)


def test_value_and_gradient_at_the_latent_are_those_of_minus_the_log_error():
    batch, defence = coarse_batch(dtype=torch.double), made(Reversed(**SMALL)).double()
    defence.mean += 0.3
    value = defence.penalty(batch)
    expected = -slow(defence, batch.z, batch.x)
    torch.testing.assert_close(value, expected)
    (mine,), (theirs,) = (torch.autograd.grad(v, batch.z) for v in (value, expected))
    torch.testing.assert_close(mine, theirs)


def test_a_step_after_the_penalty_is_the_step_without_it():
    batch = coarse_batch()
    asked, alone = made(Reversed(**SMALL)), made(Reversed(**SMALL))
    seen = Batch(batch.x, batch.y, batch.z.detach())
    for _ in range(3):
        asked.penalty(batch)
        asked.observe(seen), alone.observe(seen)
    assert same(state(asked), state(alone)) and asked.adversary.steps.item() == 3


def test_the_penalty_changes_nothing_by_itself():
    batch, defence = coarse_batch(), made(Reversed(**SMALL))
    before = state(defence)
    defence.penalty(batch), defence.penalty(batch)
    assert same(state(defence), before)


def test_the_adversary_learns_and_the_error_falls():
    batch, defence = coarse_batch(), made(Reversed(lr=1e-2, **SMALL))
    first = defence.penalty(batch).item()
    for _ in range(60):
        defence.observe(Batch(batch.x, batch.y, batch.z.detach()))
    assert defence.penalty(batch).item() > first + 0.5, "−ℓ rises as the adversary learns"


@pytest.mark.parametrize("latent", [(2, 4, 4), (5, 6), (24,)], ids=str)
def test_scale_and_shift_of_a_latent_gain_nothing_once_the_moments_have_followed(latent):
    torch.manual_seed(1)
    z, x = torch.randn(64, *latent), torch.rand(64, 1, 8, 8)
    values = []
    for scale, shift in ((1.0, 0.0), (50.0, -7.0)):
        defence = made(Reversed(**SMALL), latent)
        for _ in range(1500):
            defence.remember(scale * z + shift)
        values.append(defence.penalty(Batch(x, torch.zeros(64, dtype=torch.long), scale * z + shift)).item())
    assert values[0] == pytest.approx(values[1], rel=1e-3)


def test_it_sees_what_the_whole_guard_releases():
    guard = Guard(Noise(5.0), Reversed(**SMALL))
    guard.setup(latent=(1, 4, 4), classes=3, sigma=5.0)
    batch, link = coarse_batch(), guard.links[1]
    assert link.penalty(batch).item() != link.penalty(batch).item(), "fresh noise every time"
    assert copy.deepcopy(guard).links[1].release_all(batch.z).shape == batch.z.shape


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_batch_that_is_not_finite_leaves_everything_as_it_was(value):
    batch, defence = coarse_batch(), made(Reversed(**SMALL))
    z = batch.z.detach().clone()
    z[0, 0, 0, 0] = value
    broken, before = Batch(batch.x, batch.y, z.requires_grad_()), state(defence)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert penalty.item() == 0 and "lost" in broken.readings and not z.grad.any()
    defence.observe(Batch(batch.x, batch.y, z.detach()))
    assert same(state(defence), before) and defence.penalty(batch).isfinite()


def test_a_watched_step_tells_how_the_adversary_fares():
    batch, defence = coarse_batch(), made(Reversed(**SMALL))
    watched = Batch(batch.x, batch.y, batch.z, watched=True)
    value = defence.penalty(watched)
    assert watched.readings["adversary_mse"].item() == pytest.approx((-value).exp().item(), rel=1e-5)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="no adversary that learns"):
        Reversed(channels=0)
