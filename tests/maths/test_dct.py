"""Cosines against scipy, and the filter against a transform, a mask and its inverse, block by block."""

import numpy as np
import pytest
import scipy.fft
import torch

from attcem.maths import block_filter, cosines, zigzag


@pytest.mark.parametrize("n", [2, 4, 7, 8])
def test_cosines_are_those_of_scipy(n):
    x = torch.rand(n, n, dtype=torch.double)
    expected = scipy.fft.dctn(x.numpy(), type=2, norm="ortho")
    np.testing.assert_allclose(cosines(n) @ x @ cosines(n).T, expected, atol=1e-12)


@pytest.mark.parametrize("removed", [[(0, 0)], [(3, 2), (2, 3), (3, 3)], zigzag(4)[2:9], []])
def test_the_filter_removes_these_frequencies_and_no_others(removed):
    x = torch.rand(4, 4, dtype=torch.double)
    spectrum = scipy.fft.dctn(x.numpy(), norm="ortho")
    for frequency in removed:
        spectrum[frequency] = 0
    expected = scipy.fft.idctn(spectrum, norm="ortho")
    np.testing.assert_allclose((block_filter(4, removed) @ x.flatten()).view(4, 4), expected, atol=1e-12)


def test_it_is_an_orthogonal_projection_of_the_rank_that_is_left():
    p = block_filter(8, zigzag(8)[:11])
    torch.testing.assert_close(p @ p, p)
    torch.testing.assert_close(p, p.T)
    assert p.trace().item() == pytest.approx(64 - 11)


def test_frequencies_are_ordered_as_in_jpeg():
    first = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2), (2, 1), (3, 0), (4, 0), (3, 1)]
    assert zigzag(8)[: len(first)] == first and zigzag(8)[-3:] == [(6, 7), (7, 6), (7, 7)]
    assert sorted(zigzag(8)) == [(v, h) for v in range(8) for h in range(8)]
