"""Vectors and tokens laid out for an inverter: nothing is lost, nothing is made up, and weights stay few."""

import pytest
import torch

from attcem.attacks import flat_grid
from attcem.attacks.decoder import Decoder
from attcem.attacks.flat_grid import Attend, Enlarge, Raster, Spread, grid_of, raster_side
from attcem.attacks.inverter import Inverter
from attcem.attacks.linear import Linear
from attcem.threat import view_through
from attcem.types import Device, Images


@pytest.mark.parametrize("shape", [(197, 768), (200, 768), (20_000,)], ids=["raster and class", "no raster", "vector"])
def test_weights_stay_few_for_large_latents_of_large_pictures(shape):
    latents, x = torch.randn(8, *shape), torch.rand(2, 3, 224, 224)
    network = Inverter(latents, x.mean(0), channels=64, blocks=4)
    numbers = [*network.parameters(), *network.buffers()]
    assert sum(tensor.numel() for tensor in numbers) < 50e6
    (network(latents[:2]) - x).square().mean().backward()
    assert network.out.weight.grad.any()


@pytest.mark.parametrize(("tokens", "side"), [(1, 0), (2, 0), (4, 2), (5, 2), (6, 0), (49, 7), (50, 7), (197, 14)])
def test_a_square_of_tokens_and_one_more_may_be_a_raster(tokens, side):
    assert raster_side(tokens) == side


@pytest.mark.parametrize("fold", [1, 2])
def test_a_raster_puts_every_token_at_its_place_and_the_class_token_everywhere(fold):
    tokens, size = torch.randn(2, 17, 3), 4 // fold
    cells = Raster(4, fold, (size, size))(tokens)
    assert cells.shape == (2, 3 * fold**2 + 3, size, size)
    back = torch.nn.functional.pixel_shuffle(cells[:, : 3 * fold**2], fold)
    for row in range(4):
        for column in range(4):
            assert torch.equal(back[:, :, row, column], tokens[:, 1 + 4 * row + column])
    assert torch.equal(cells[:, -3:], tokens[:, 0, :, None, None].expand(-1, -1, size, size))


def test_tokens_without_deviation_are_answered_by_nothing_and_their_order_matters_only_by_place():
    tokens = torch.randn(6, 5, 3)
    attend = Attend(tokens, 6, (4, 4))
    assert not attend(torch.zeros_like(tokens)).any()
    torch.nn.init.zeros_(attend.places)
    torch.testing.assert_close(attend(tokens), attend(tokens.flip(1)))


@pytest.mark.parametrize("shape", [(12,), (9, 4), (10, 4), (7, 4)])
def test_constant_latents_look_the_same_whatever_they_are(shape):
    grid = grid_of(torch.full((20, *shape), 0.3), 28, 28, 8)
    cells = grid(torch.full((3, *shape), 0.3))
    assert cells.isfinite().all() and (cells == cells[:1]).all()


@pytest.mark.parametrize(("size", "coarse"), [((7, 7), (7, 7)), ((9, 16), (5, 8)), ((56, 50), (7, 7))])
def test_a_coarse_grid_is_enlarged_by_doublings(size, coarse):
    enlarge = Enlarge(3, size)
    assert enlarge.coarse == coarse and enlarge(torch.rand(2, 3, *coarse)).shape == (2, 3, *size)


@pytest.mark.parametrize("limit", [2**24, 2**12], ids=["dense", "through axes"])
def test_large_matrices_go_through_principal_axes(limit, monkeypatch):
    monkeypatch.setattr(flat_grid, "MOST_WEIGHTS", limit)
    grid = grid_of(torch.randn(40, 300), 32, 32, 8)
    for spread in grid.parts:
        assert isinstance(spread, Spread) and (spread.axes is None) == (limit == 2**24)
    assert grid(torch.randn(2, 300)).shape == (2, grid.channels, 8, 8)


def test_a_map_of_few_cells_is_read_as_tokens_in_a_raster_and_a_finer_one_as_it_is():
    latents = torch.randn(50, 6, 2, 2)
    grid = grid_of(latents, 32, 32, 8)
    assert not grid.located and [type(part) for part in grid.parts] == [Spread, Spread, Attend, Raster]
    shown = grid(latents[:3])[:, -6:]
    torch.testing.assert_close(shown[:, :, 0, 7], grid.standardise(latents[:3])[:, 1])
    assert grid_of(torch.randn(50, 6, 8, 8), 32, 32, 8).located and grid_of(torch.randn(50, 6, 4, 4), 16, 16, 8).located


def test_what_dense_layers_of_the_device_have_mixed_a_decoder_unmixes_where_nothing_linear_does(narrow):
    """Brightness that a latent tells only by its size: no linear guess of it is better than the mean image."""
    torch.manual_seed(0)
    images = Images(
        torch.randint(0, 256, (1500, 1, 1, 1), dtype=torch.uint8).expand(-1, 12, 12, 1), torch.zeros(1500).long()
    )
    directions = torch.randn(1500, 16)

    def encode(x):
        told = x.mean((1, 2, 3))[:, None]
        return told * directions[(1e6 * told[:, 0]).long() % 1500].sign()

    view = view_through(Device(encode, lambda z: z), images[:1300], images[1300:], frozenset({"queries"}))
    x = images[1300:].pixels()
    linear, learnt = (
        (attack(view).images - x).square().mean() / x.var()
        for attack in (Linear(), Decoder(8, 0, cycle=150, doublings=0))
    )
    assert linear > 0.8 and learnt < 0.3


@pytest.mark.parametrize("shape", [(30,), (6, 5)], ids=["vector", "tokens"])
def test_the_linear_attack_finds_what_is_linear_and_leaves_what_is_noise(shape):
    torch.manual_seed(0)
    images = Images(torch.randint(0, 256, (700, 4, 4, 1), dtype=torch.uint8), torch.zeros(700, dtype=torch.long))
    mixing = torch.randn(16, 30)
    told = Device(lambda x: (x.flatten(1) @ mixing).unflatten(1, shape), lambda z: z)
    noise = Device(told.encode, torch.randn_like)
    for device, least, most in ((told, 0.0, 0.01), (noise, 0.97, 1.03)):
        view = view_through(device, images[:600], images[600:], frozenset({"queries"}))
        x = images[600:].pixels()
        error = (Linear()(view).images - x).square().mean() / x.var()
        assert least <= error < most
