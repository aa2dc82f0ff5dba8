"""Optimising pixels: it solves what it says it minimises, each image by itself, and falls back on its decoder."""

import math
from dataclasses import replace

import pytest
import torch

from attcem.attacks.decoder import Decoder
from attcem.attacks.errors import ErrorSpectrum
from attcem.attacks.match import Match
from attcem.attacks.optimise import Optimise
from attcem.attacks.pixel_search import SOLVERS, Problem, roughness
from attcem.data import Data
from attcem.defences import Defence, Noise, Undefended
from attcem.metrics import METRICS
from attcem.threat import build_view
from attcem.types import Device, View
from tests.attacks.conftest import smaller, view_of
from tests.conftest import noise_images, shrink
from tests.probes import Blank, Pixels, split_with


@pytest.fixture(scope="module")
def few(fashion) -> Data:
    return smaller(shrink(fashion, private=10, validation=10, public=300, test=20))


class Halves(Defence):
    """Loses about half of the latent at random, and doubles the rest."""

    def release(self, z):
        return 2 * z * (torch.rand_like(z) < 0.5)


class Rounds(Defence):
    """What it releases has no gradient."""

    def release(self, z):
        return (10 * z).round() / 10


class Mixes(torch.nn.Module):
    """A random encoder that no linear guess inverts."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(8, 1, 5, 5, generator=generator) / 3)

    def forward(self, x):
        return torch.nn.functional.conv2d(2 * x - 1, self.weight, stride=2, padding=2).mul(2).sin().mul(2)


def linear_view(matrix, guard=lambda z: z, targets=4):
    """A device whose encoder is a matrix, on 6 × 6 pictures of noise."""
    images = noise_images(300, (1, 6, 6))
    device = Device(encode=lambda x: x.flatten(1) @ matrix.T, release=guard)
    sent = guard(device.encode(images[:targets].pixels()))
    return View(public=images, oracle=None, targets=sent, device=device), images[:targets].pixels()


def test_roughness_is_the_sum_over_neighbours():
    x, smooth = torch.rand(2, 3, 5, 4), 0.01
    expected = torch.zeros(2)
    for b in range(2):
        for c in range(3):
            for i in range(5):
                for j in range(4):
                    if i < 4:
                        expected[b] += math.hypot(x[b, c, i + 1, j] - x[b, c, i, j], smooth) - smooth
                    if j < 3:
                        expected[b] += math.hypot(x[b, c, i, j + 1] - x[b, c, i, j], smooth) - smooth
    torch.testing.assert_close(roughness(x), expected)
    assert roughness(torch.full((1, 1, 3, 3), 0.7)).abs() < 1e-7


def test_the_objective_is_mismatch_and_anchor_and_roughness():
    matrix = torch.randn(10, 36)
    view, _ = linear_view(matrix)
    match, x, start = Match(view), torch.rand(4, 1, 6, 6), torch.rand(4, 1, 6, 6)
    anchor, tv = torch.tensor([0.0, 1.0, 2.0, 3.0]), torch.tensor([5.0, 0.0, 1.0, 2.0])
    for b in range(4):
        latent, expected = matrix @ x[b].flatten(), tv[b] * roughness(x[b : b + 1])[0]
        for d in range(10):
            expected = expected + (latent[d] - view.targets[b, d]) ** 2 / match.scale[d]
        for pixel in range(36):
            expected = expected + anchor[b] * (x[b].flatten()[pixel] - start[b].flatten()[pixel]) ** 2
        torch.testing.assert_close(
            Problem(match, ErrorSpectrum.even(x), view.targets, start, anchor, tv)(x)[b], expected
        )


def test_the_scale_is_the_noise_and_a_small_share_of_the_spread():
    view, truth = linear_view(torch.randn(10, 36), Noise(0.5).release)
    match = Match(view)
    torch.testing.assert_close(match.scale, torch.full((10,), 0.25), rtol=0.2, atol=0.01)
    assert match.adds
    values = torch.stack([match(truth, Noise(0.5).release(view.device.encode(truth))) for _ in range(200)])
    assert values.mean().item() == pytest.approx(10, rel=0.1)


def test_the_expectation_is_that_of_the_release():
    view, _ = linear_view(torch.randn(10, 36), Halves().release)
    x = view.public[:3].pixels()
    match = Match(view, draws=4000)
    assert not match.adds and match.differentiable
    torch.testing.assert_close(match.expected(x), view.device.encode(x), rtol=0.1, atol=0.3)
    blank, _ = linear_view(torch.randn(10, 36), Blank().release)
    assert Match(blank)(x, blank.targets[:3]).abs().max() == 0


def test_a_release_without_gradient_is_seen_through():
    view, _ = linear_view(torch.randn(10, 36), Rounds().release)
    match, x = Match(view), view.public[:3].pixels().requires_grad_()
    torch.testing.assert_close(match.expected(x), Rounds().release(view.device.encode(x)))
    assert torch.autograd.grad(match(x, view.targets[1:4]).sum(), x)[0].any()


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_linear_encoder_is_solved_to_the_optimum_of_the_prior(solver):
    matrix = torch.randn(10, 36) / 6
    view, _ = linear_view(matrix)
    match, start, anchor = Match(view), torch.full((4, 1, 6, 6), 0.5), 3e3
    z = view.device.encode(start) + 0.2 * (view.targets - view.device.encode(start))  # an optimum inside [0,1]
    scaled = matrix.T / match.scale
    solution = torch.linalg.solve(
        scaled @ matrix + anchor * torch.eye(36), scaled @ (z - start.flatten(1) @ matrix.T).T
    )
    expected = start + solution.T.reshape(4, 1, 6, 6)
    assert expected.min() > 0 and expected.max() < 1
    problem = Problem(match, ErrorSpectrum.even(start), z, start, torch.full((4,), anchor), torch.zeros(4))
    found, _ = Optimise(solver=solver).solve(problem, start, 400)
    torch.testing.assert_close(found, expected, rtol=0, atol=2e-3)
    assert (expected - start).abs().max() > 0.05


def test_adam_treats_each_image_by_itself(few):
    view, _ = view_of(Mixes(), few, Noise(0.05), threat="white_box", images=4)
    attack = replace(Optimise(solver="adam").brief(), images=4, tuning=4, start=Decoder(8, 1, cycle=1, doublings=0))
    four = attack(view).images
    two = replace(attack, images=2)(view).images
    assert len(four) == 4
    torch.testing.assert_close(four[:2], two, rtol=0, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_gains_on_a_decoder_that_learned_little(solver, few):
    network = split_with(Mixes(), few.shape)
    view, truth = build_view(network, Undefended(), few, images=8, threat="white_box")
    start = Decoder(8, 1, cycle=1, doublings=0)
    attack = replace(Optimise(solver=solver).brief(), start=start)
    found, guess = attack(view).images, start.trained(view, 0).invert(view.targets)
    mse = METRICS["mse"]
    assert mse(found, truth.pixels()).mean() < 0.5 * mse(guess, truth.pixels()).mean()
    assert all(p.grad is None for p in network.parameters()), "the victim is as it was"


def test_every_target_is_attacked_where_that_pays_on_public_images(few):
    view, truth = view_of(Mixes(), few, threat="white_box", images=12)
    start = Decoder(8, 1, cycle=1, doublings=0)
    first = Optimise(images=4, steps=60, restarts=1, tuning=8, start=start)
    everywhere = replace(first, worthwhile=0.3)
    some, found = first(view).images, everywhere(view)
    assert len(some) == 4 and len(found.images) == 12
    before = METRICS["mse"](start.trained(view, 0).invert(view.targets), truth.pixels())
    after = METRICS["mse"](found.images, truth.pixels())
    assert after[4:].mean() < 0.7 * before[4:].mean()
    assert len(replace(first, worthwhile=1.001 - found.curve[1] / found.curve[0])(view).images) == 4


def test_of_several_ends_the_one_that_explains_each_image_best_is_kept():
    view, _ = linear_view(torch.randn(10, 36))
    ends = [torch.rand(4, 1, 6, 6) for _ in range(3)]
    problem = Problem(Match(view), ErrorSpectrum.even(ends[0]), view.targets, ends[0], torch.ones(4), torch.ones(4))
    for image, found in enumerate(problem.lowest(ends)):
        values = [problem(end)[image] for end in ends]
        assert torch.equal(found, ends[values.index(min(values))][image])


@pytest.mark.parametrize("solver", SOLVERS)
def test_pure_noise_leaves_the_decoders_guess(solver, few):
    view, _ = view_of(Pixels(), few, Noise(1000), threat="white_box", images=8)
    brief = Optimise(solver=solver).brief()
    attack = replace(brief, start=replace(brief.start, cycle=20))
    decoder = attack.start.trained(view, 0)
    _, anchor, _, curve = attack.tuned(view, Match(view), decoder, 0)
    assert math.isinf(anchor) and len(curve) == 1
    assert torch.equal(attack(view).images, decoder.invert(view.targets))


def test_says_when_it_was_cut_short(few):
    view, _ = view_of(Mixes(), few, threat="white_box", images=4)
    start = Decoder(8, 1, cycle=1, doublings=0)
    short, long = (Optimise(images=4, steps=steps, restarts=0, tuning=8, start=start) for steps in (8, 120))
    own = [[flag for flag in attack(view).flags if "still falling" in flag] for attack in (short, long)]
    assert own[0] and not own[1]  # the decoder that both start from has flags of its own


def test_needs_the_weights(few):
    view, _ = view_of(Pixels(), few, threat="query", images=4)
    with pytest.raises(ValueError, match="white_box"):
        Match(view)


def test_a_saturated_sigmoid_is_matched_before_its_squashing_unless_noise_covers_it():
    images = noise_images(300, (1, 6, 6))
    saturated = Device(encode=lambda x: torch.sigmoid(12 * (x.flatten(1) - 0.5)), release=lambda z: z)
    noisy = replace(saturated, release=lambda z: z + 0.1 * torch.randn_like(z))
    x = images[:4].pixels()
    view = View(public=images, oracle=None, targets=saturated.encode(x), device=saturated)
    logits = 12 * (images.pixels().flatten(1) - 0.5)
    moved = (x + 0.01).clamp(0, 1)
    expected = (144 * (moved - x).square().flatten(1)).sum(1) / (1e-3 * logits.var())
    torch.testing.assert_close(Match(view, straight=True)(moved, view.targets), expected, rtol=0.1, atol=0)
    assert Match(replace(view, device=noisy), straight=True).read(x) is x
    assert Match(view).read(x) is x
