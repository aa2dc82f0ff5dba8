"""A decoder that sends its guess to the device and reads what the answer differs by."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from torch import nn

from attcem.attacks.decoder import Decoder
from attcem.attacks.feedback import ANSWERS, AnsweredGrid, Feedback
from attcem.attacks.flat_grid import grid_of
from attcem.attacks.grid import Grid
from attcem.attacks.inversion import Inversion
from attcem.attacks.inverter import Inverter
from attcem.defences import Noise, Undefended
from attcem.threat import build_view, view_through
from attcem.types import Device, Images, Workbook

FIRST = Decoder(8, 1, cycle=20, doublings=0)
SECOND = Feedback(FIRST, cycle=20, doublings=0)


class Constant(nn.Module):
    """Guesses the same picture whatever it is sent."""

    def __init__(self, picture: torch.Tensor) -> None:
        super().__init__()
        self.picture = nn.Parameter(picture)

    def forward(self, released: torch.Tensor) -> torch.Tensor:
        return self.picture.expand(len(released), *self.picture.shape)


@pytest.mark.parametrize(
    "shape", [(4, 4, 4), (2, 9, 9), (6,), (5, 3)], ids=["cells", "finer than cells", "vector", "tokens"]
)
def test_it_shows_the_latent_and_beside_it_what_the_answer_differs_by(shape):
    latents, answer = torch.randn(50, *shape), torch.randn(shape)
    grid = grid_of(latents, 16, 16, 8)
    asked = []
    feedback = AnsweredGrid(
        grid, Constant(torch.full((3, 16, 16), 1.5)), lambda x: asked.append(x) or answer, latents, 16, 16, 8
    )
    cells = feedback(latents[:5])
    assert cells.shape[1] == feedback.channels == grid.channels + feedback.differences.channels
    torch.testing.assert_close(cells[:, : grid.channels], grid(latents[:5]))
    torch.testing.assert_close(feedback.difference(latents[:5]), latents[:5] - answer)
    torch.testing.assert_close(cells[:, grid.channels :], feedback.differences(latents[:5] - answer))
    assert all(torch.equal(x, torch.ones_like(x)) for x in asked), "a picture has no brighter pixel than white"


def test_squashed_latents_are_compared_before_the_squashing_too():
    latents = torch.randn(50, 4, 4, 4).sigmoid()
    feedback = AnsweredGrid(
        grid_of(latents, 16, 16, 8), Constant(torch.zeros(3, 16, 16)), lambda x: latents[:1], latents, 16, 16, 8
    )
    found = feedback.difference(latents[1:3])
    torch.testing.assert_close(found[:, :4], latents[1:3] - latents[:1])
    torch.testing.assert_close(found[:, 4:], latents[1:3].logit() - latents[:1].logit(), rtol=1e-4, atol=1e-4)


def test_the_guess_it_asks_about_does_not_learn():
    latents = torch.randn(20, 4, 4, 4)
    inverter = Inverter(latents, torch.full((3, 16, 16), 0.5), 8, 1)
    guess = copy.deepcopy(inverter)
    inverter.read(
        AnsweredGrid(
            inverter.grid,
            guess,
            lambda x: x[:, :, ::4, ::4].mean(1, keepdim=True) + 0 * latents[:1],
            latents,
            16,
            16,
            8,
        )
    )
    inverter(latents).square().sum().backward()
    assert all(parameter.grad is None for parameter in guess.parameters())
    assert inverter.out.weight.grad is not None


@pytest.fixture
def view(network, small):
    return build_view(network, Undefended(), small, images=20)[0]


def test_it_asks_about_the_guess_of_its_start_and_so_does_who_goes_on_from_it(view):
    first, second = FIRST.trained(view, 0), SECOND.trained(view, 0)
    deeper = Inversion(Decoder(8, 2, start=SECOND), view, 0, second)
    for network in (second.network, deeper.network):
        assert isinstance(network.grid.grid, Grid), "and about no other"
        torch.testing.assert_close(network.grid.guess(view.targets), first.network(view.targets))


def test_what_it_has_learnt_is_found_again(view):
    found = SECOND(view, seed=0)
    again = replace(view, workbook=Workbook())
    SECOND.recall(again, found, seed=0)
    assert torch.equal(SECOND(again, seed=0).images, found.images)


def test_a_device_that_adds_noise_is_asked_more_than_once_and_the_guess_depends_on_the_seed_only(network, small):
    view, _ = build_view(network, Noise(sigma=0.5), small, images=20)
    training = SECOND.trained(view, 0)
    first, second = (SECOND(view, seed=0).images for _ in range(2))
    assert torch.equal(first, second)
    x = small.public[:64].pixels()
    once, averaged = view.oracle, training.network.grid.ask
    noise, less = ((ask(x) - ask(x)).var().item() for ask in (once, averaged))
    assert less == pytest.approx(noise / ANSWERS, rel=0.2)


def test_where_small_differences_tell_the_picture_it_finds_more_than_its_start():
    """Of two pixels the device sends the sum and the signed square of the difference: a decoder must learn a root."""
    torch.manual_seed(0)
    images = Images(torch.randint(0, 256, (600, 8, 8, 1), dtype=torch.uint8), torch.zeros(600, dtype=torch.long))

    def encode(x):
        left, right = x[..., ::2], x[..., 1::2]
        return torch.cat([left + right, (left - right).square() * (left - right).sign() * 3], 1)

    device = Device(encode=encode, release=lambda z: z)
    view = view_through(device, images[:560], images[560:], frozenset({"queries"}))
    start = Decoder(16, 1, cycle=60, doublings=0)
    plain, feedback = replace(start, start=start), Feedback(start, cycle=60, doublings=0)
    before, longer, told = (decoder.trained(view, 0).best for decoder in (start, plain, feedback))
    assert told < 0.8 * longer < before
