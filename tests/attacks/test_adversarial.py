from dataclasses import replace

import pytest
import torch

from attcem.attacks.adversarial import AdversarialDecoder, Critic, critic_weight, steepness
from attcem.attacks.class_aware import ClassAware
from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import snapshot
from attcem.defences import Noise
from tests.attacks.conftest import view_of
from tests.probes import Pixels

BRIEF = AdversarialDecoder().brief()
TINY = replace(BRIEF, start=replace(Decoder(8, 1), cycle=10, doublings=0), steps=4)


def query_view(data, sigma):
    return view_of(Pixels(), data, Noise(sigma), threat="query")[0]


def test_needs_queries_and_no_more():
    assert BRIEF.needs == {"public", "queries"} and BRIEF.observations == 1
    assert "logits" in AdversarialDecoder(ClassAware(Decoder(8, 1))).needs


def test_the_start_in_the_workbook_stays_as_it_was_trained(thumbnails):
    view = query_view(thumbnails, 0.3)
    start = TINY.start.trained(view, 0)
    before, best, curve = snapshot(start.network), start.best, list(start.curve)
    tuned, _ = TINY.tune(start)
    assert all(torch.equal(tensor, start.network.state_dict()[name]) for name, tensor in before.items())
    assert start.best == best and start.curve == curve
    assert any(not torch.equal(tensor, tuned.network.state_dict()[name]) for name, tensor in before.items())


@pytest.mark.parametrize("lr", [3e-4, 0.03])
def test_validation_loss_stays_within_the_allowance_even_where_training_diverges(lr, pictures):
    view = query_view(pictures, 0.5)
    start = TINY.start.trained(view, 0)
    tuned, curve = replace(TINY, lr=lr, steps=10).tune(start)
    most = (1 + TINY.allowance) * curve[0]
    assert tuned.validate() <= 1.01 * most  # fresh noise
    assert (max(curve) > most) == (lr > 0.01)


def test_the_same_seed_gives_the_same_guess(thumbnails):
    view = query_view(thumbnails, 0.1)
    first, second, other = (TINY(view, seed=seed).images for seed in (0, 0, 1))
    assert torch.equal(first, second) and not torch.equal(first, other)


def test_the_critics_weight_raises_the_error_by_what_was_asked():
    """A critic of slope 1 and a mean squared error: the best guess lies off the mean by a known distance."""
    rise, pixels = 0.01, 48
    slope = torch.nn.functional.normalize(torch.randn(pixels), dim=0)
    moved = torch.zeros(pixels, requires_grad=True)
    optimiser = torch.optim.SGD([moved], lr=1.0)
    for _ in range(500):
        optimiser.zero_grad()
        (moved.square().mean() - critic_weight(rise, pixels) * moved @ slope).backward()
        optimiser.step()
    assert moved.square().mean().item() == pytest.approx(rise, rel=1e-3)


def test_steepness_is_the_squared_departure_from_slope_one():
    class Plane(torch.nn.Module):
        def forward(self, x):
            return 3 * x[:, 0, 0, 0] + 4 * x[:, 0, 1, 1]

    assert steepness(Plane(), torch.rand(5, 1, 2, 2), torch.rand(5, 1, 2, 2)).item() == pytest.approx(16)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 33, 30)])
def test_the_critic_learns_to_tell_two_kinds_of_pictures_apart(shape):
    critic = Critic(shape[0])
    optimiser = torch.optim.Adam(critic.parameters(), 1e-3)
    bright, dark = 0.6 + 0.1 * torch.rand(8, *shape), 0.4 * torch.rand(8, *shape)
    for _ in range(10):
        optimiser.zero_grad()
        (critic(dark).mean() - critic(bright).mean() + 10 * steepness(critic, dark, bright)).backward()
        optimiser.step()
    assert critic(bright).min() > critic(dark).max()
