"""SSIM against a plain two-dimensional convolution, in value and gradient."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths.similarity import structural_similarity


def slow_similarity(guess, x):
    """Every plane convolved by itself with the 11×11 window, as the equation has it."""
    offset = torch.arange(-5.0, 6.0, dtype=x.dtype)
    bell = torch.exp(-(offset[:, None] ** 2 + offset[None] ** 2) / (2 * 1.5**2))
    window = (bell / bell.sum())[None, None]

    def local(planes):
        return F.conv2d(planes.flatten(0, 1).unsqueeze(1), window)

    mean_g, mean_x = local(guess), local(x)
    var_g, var_x = local(guess**2) - mean_g**2, local(x**2) - mean_x**2
    shared = local(guess * x) - mean_g * mean_x
    light = (2 * mean_g * mean_x + 1e-4) / (mean_g**2 + mean_x**2 + 1e-4)
    structure = (2 * shared + 9e-4) / (var_g + var_x + 9e-4)
    return (light * structure).reshape(len(x), -1).mean(1)


@settings(max_examples=15)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(11, 30), st.integers(11, 30), st.integers(0, 999))
def test_value_and_gradient_are_those_of_the_convolution(n, channels, height, width, seed):
    generator = torch.Generator().manual_seed(seed)
    guess, x = torch.rand(2, n, channels, height, width, generator=generator, dtype=torch.double)
    guess.requires_grad_()
    found, expected = structural_similarity(guess, x), slow_similarity(guess, x)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    slopes = (torch.autograd.grad(value.sum(), guess)[0] for value in (found, expected))
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-12)


def test_single_precision_is_enough_on_real_images(fashion):
    x = fashion.test[:64].pixels()
    guess = (x + 0.1 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))).clamp(0, 1)
    expected = slow_similarity(guess.double(), x.double()).float()
    torch.testing.assert_close(structural_similarity(guess, x), expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (11, 3)])
def test_images_smaller_than_the_window_are_one_window(size):
    x = torch.rand(3, 1, *size, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(structural_similarity(x, x), torch.ones(3), rtol=0, atol=1e-4)
    assert structural_similarity(1 - x, x).mean() < 0.99
