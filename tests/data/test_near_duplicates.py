"""The search for near-duplicates finds altered copies, and nothing else."""

import io

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from attcem.data import near_duplicates
from attcem.data.near_duplicates import near_pairs, pairs_above


def scenes(count, side=32, channels=3, seed=0):
    """Pictures whose spectrum falls like that of photographs, 1/f."""
    numbers = np.random.default_rng(seed)
    frequency = np.hypot(*np.meshgrid(np.fft.fftfreq(side), np.fft.fftfreq(side)))
    frequency[0, 0] = 1
    waves = np.fft.fft2(numbers.normal(size=(count, channels, side, side))) / frequency
    fields = np.fft.ifft2(waves).real.transpose(0, 2, 3, 1)
    fields = fields / fields.std(axis=(1, 2, 3), keepdims=True)
    return np.clip(128 + 50 * fields, 0, 255).astype(np.uint8)


def as_jpeg(image):
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=60)
    return np.asarray(Image.open(file))


CHANGES = {
    "re-compressed": as_jpeg,
    "brightened": lambda image: (image * 0.8 + 40).astype(np.uint8),
    "darker by a curve": lambda image: (255 * (image / 255) ** 1.4).astype(np.uint8),
    "shifted": lambda image: np.pad(image, ((1, 0), (1, 0), (0, 0)), mode="edge")[:-1, :-1],
    "softened": lambda image: np.asarray(Image.fromarray(image).resize((22, 22)).resize((32, 32))),
}


@pytest.mark.parametrize("change", CHANGES)
def test_altered_copies_are_found_and_nothing_else(change):
    x = scenes(400)
    copies = np.stack([CHANGES[change](image) for image in x[:40]])
    found = near_pairs(np.concatenate([x, copies]), np.arange(440) % 10)
    assert set(map(tuple, found.tolist())) == {(index, 400 + index) for index in range(40)}


@pytest.mark.parametrize("deviation", [0, 1, 3])
def test_flat_pictures_with_noise_are_not_alike(deviation):
    noise = np.random.default_rng(0).normal(128, deviation, (300, 28, 28, 1)).astype(np.uint8)
    assert not len(near_pairs(noise, np.arange(300) % 2))


def test_one_outline_with_other_contents_is_no_duplicate():
    """Framed pictures, and clothes of one cut, share strong edges."""
    x = scenes(300, side=28, channels=1) // 4 + 150
    x[:, :, :6] = x[:, :, -6:] = x[:, :4] = 0
    assert not len(near_pairs(x, np.arange(300) % 3))


def test_a_gradient_or_two_pictures_are_no_problem():
    ramp = np.broadcast_to(np.arange(0, 224, 8, dtype=np.uint8)[:, None, None], (50, 28, 28, 1)).copy()
    assert near_pairs(ramp[:1], np.zeros(1, int)).shape == (0, 2)
    assert near_pairs(ramp[:2], np.arange(2)).shape[1] == 2


@settings(max_examples=25)
@given(count=st.integers(1, 40), seed=st.integers(0, 99))
def test_pairs_agree_with_a_loop(count, seed):
    torch.manual_seed(seed)
    rows, least = torch.randn(count, 3), torch.randn(count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(near_duplicates, "BLOCK", 7)
        found = set(map(tuple, pairs_above(rows, least).tolist()))
    wanted = {(i, j) for i in range(count) for j in range(i + 1, count) if rows[i] @ rows[j] >= max(least[i], least[j])}
    assert found == wanted


def test_the_best_shift_agrees_with_a_loop():
    torch.manual_seed(0)
    first, second = torch.randn(3, 8, 9), torch.randn(3, 8, 9)
    found = near_duplicates.correlations(torch.cat([first, second]), torch.tensor([[0, 3], [1, 4], [2, 5]]))
    for a, b, best in zip(first, second, found, strict=True):
        products = [
            sum(
                float(a[row, column] * b[row - down, column - right])
                for row in range(8)
                for column in range(9)
                if 0 <= row - down < 8 and 0 <= column - right < 9
            )
            for down in range(-2, 3)
            for right in range(-2, 3)
        ]
        assert float(best) == pytest.approx(max(products), abs=1e-4)
