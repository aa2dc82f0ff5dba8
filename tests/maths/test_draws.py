"""Draws that depend on shape and seed only."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attcem.maths import gaussian_like


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 2**32))
def test_the_same_numbers_as_randn(shape: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    drawn = gaussian_like(torch.zeros(shape, dtype=torch.float64))
    assert torch.equal(drawn, torch.randn(shape, dtype=torch.float64, generator=torch.manual_seed(seed)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_layout_does_not_matter(dtype: torch.dtype) -> None:
    rows = torch.zeros(4, 8, 4, 4, dtype=dtype)
    torch.manual_seed(3)
    expected = gaussian_like(rows)
    torch.manual_seed(3)
    drawn = gaussian_like(rows.to(memory_format=torch.channels_last))
    assert drawn.dtype == dtype and torch.equal(drawn, expected)
    torch.manual_seed(3)
    assert not torch.equal(torch.randn_like(rows.to(memory_format=torch.channels_last)), expected), "or why have ours?"
