import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.attacks.flat_grid import grid_of
from attcem.attacks.inverter import Inverter


@settings(max_examples=25)
@given(
    latent=st.one_of(
        st.tuples(st.integers(1, 9), st.integers(1, 40), st.integers(1, 40)),
        st.tuples(st.integers(1, 50)),
        st.tuples(st.integers(1, 17), st.integers(1, 9)),
    ),
    image=st.tuples(st.sampled_from([1, 3]), st.integers(28, 40), st.integers(28, 40)),
)
def test_any_latent_to_any_image_starting_from_the_mean_image(latent, image):
    latents, mean = torch.randn(3, *latent), torch.rand(image)
    network = Inverter(latents, mean, channels=8, blocks=1)
    assert torch.equal(network(latents), mean.expand(3, *image))
    network(latents).sum().backward()
    assert any(p.grad is not None and p.grad.any() for p in network.parameters())


@pytest.mark.parametrize("scale", [1e-4, 1, 1e4])
def test_the_latents_scale_and_offset_do_not_matter(scale):
    latents = scale * torch.randn(500, 4, 7, 7) + 3 * scale
    cells = grid_of(latents, 28, 28, 8)(latents)
    assert cells.mean().abs() < 0.01 and cells.std().item() == pytest.approx(1, abs=0.01)


def test_a_constant_latent_stays_finite():
    latents = torch.full((10, 4, 7, 7), 2.0)
    assert grid_of(latents, 28, 28, 8)(latents).isfinite().all()


@pytest.mark.parametrize("image", [(1, 28, 28), (3, 32, 36)])
def test_the_linear_guess_is_the_least_squares_solution(image):
    """A latent that is a linear map of each patch, at the grid's resolution: inverted without training."""
    x = torch.rand(300, *image)
    released = torch.nn.functional.pixel_unshuffle(x, 4)
    # a rotation: a matrix drawn at random may be too ill-conditioned for any regression
    rotation = torch.linalg.qr(torch.randn(released.shape[1], released.shape[1])).Q
    mixed = torch.einsum("nchw,dc->ndhw", released, rotation)
    network = Inverter(mixed, x.mean(0), channels=8, blocks=1)
    network.solve_linear(zip(mixed.split(100), x.split(100), strict=True))
    assert (network(mixed) - x).square().mean() < 1e-3


def test_the_linear_guess_is_solved_for_what_the_blocks_leave():
    x, released = torch.rand(300, 3, 32, 32), torch.randn(300, 5, 8, 8)
    network = Inverter(released, x.mean(0), channels=8, blocks=1)
    torch.nn.init.normal_(network.out.weight, std=0.1)
    network.solve_linear([(released, x)])
    (network(released) - x).square().mean().backward()
    slopes = [parameter.grad.abs().max() for parameter in network.solved()]
    assert max(slopes) < 1e-5 < network.out.weight.grad.abs().max(), "no small change of it would help"


@pytest.mark.parametrize("size", [(28, 28), (31, 30), (33, 29)])
def test_folding_keeps_pixels_where_they_are(size):
    """An image as its own latent: unfolding the folded cells gives it back."""
    x = torch.rand(2, 1, *size)
    grid = grid_of(torch.randn(100, 1, *size), *size, 8)
    grid.mean.zero_(), grid.std.fill_(1)
    back = torch.nn.functional.pixel_shuffle(grid(x), grid.fold)
    assert back.shape[-2:] == grid.covers
    assert torch.equal(back[..., : size[0], : size[1]], x)
