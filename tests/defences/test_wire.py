"""What is sent lies on a fixed grid, and the grid is the last that happens to it."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Guard, Noise, Wire, create_defence


def nearest_on_the_grid(value, bits, low, high):
    """Every value of the grid, one by one."""
    grid = [low + (high - low) * code / (2**bits - 1) for code in range(2**bits)]
    return min(grid, key=lambda known: abs(known - value))


@settings(max_examples=30)
@given(
    bits=st.sampled_from([4, 8]),
    low=st.floats(-3, 0),
    width=st.floats(0.5, 4),
    sigma=st.floats(0, 0.5),
    values=st.lists(st.floats(-6, 6), min_size=1, max_size=6),
)
def test_equal_to_the_slow_search(bits, low, width, sigma, values):
    wire = Wire(bits, low, low + width)
    wire.setup(latent=(len(values),), classes=2, sigma=sigma)
    z = torch.tensor([values], dtype=torch.double)
    wanted = [nearest_on_the_grid(v, bits, low - 4 * sigma, low + width + 4 * sigma) for v in values]
    step = (width + 8 * sigma) / (2**bits - 1)
    found = wire.release(z)
    tie = ((z - found).abs() - step / 2).abs() < 1e-9  # either neighbour will do
    assert ((found - torch.tensor([wanted], dtype=torch.double)).abs() < 1e-9)[~tie].all()


def test_what_is_released_twice_is_released_once():
    wire = Wire(4)
    once = wire.release(torch.rand(3, 5))
    assert torch.equal(wire.release(once), once) and len(once.unique()) <= 16


def test_gradients_pass_inside_the_range_and_end_outside():
    z = torch.tensor([[-1.0, 0.3, 2.0]], requires_grad=True)
    Wire(8).release(z).sum().backward()
    assert torch.allclose(z.grad, torch.tensor([[0.0, 1.0, 0.0]]))


def test_it_is_last_in_any_order():
    guard = create_defence("wire") + create_defence("topk") + Noise(0.1)
    assert isinstance(guard.links[-1], Wire)
    guard.setup(latent=(6,), classes=2, sigma=guard.sigma)
    released = guard.release(torch.rand(4, 6))
    codes = 255 * (released + 0.4) / 1.8
    assert torch.allclose(codes, codes.round(), atol=1e-3)


def test_wrong_options_name_the_fix():
    with pytest.raises(ValueError, match="give 8 or 4"):
        Wire(bits=5)
    with pytest.raises(ValueError, match="range of the clean latent"):
        Wire(low=1.0, high=0.0)


def test_the_grid_reaches_beyond_the_noise():
    guard = Guard(Noise(0.2), Wire())
    guard.setup(latent=(5,), classes=2, sigma=guard.sigma)
    assert guard.links[-1].grid == pytest.approx((-0.8, 1.8))
