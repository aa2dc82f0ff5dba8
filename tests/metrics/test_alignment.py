"""What alignment forgives, against brute force, and what it must not."""

import numpy as np
import pytest
import torch

from attcem.metrics import METRICS, aligned
from attcem.metrics.image import moved, recoloured

mse = METRICS["mse"]


def pictures(n, channels=3, side=20, seed=0):
    """Random but smooth, as pictures are."""
    coarse = torch.rand(n, channels, side // 4, side // 4, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.interpolate(coarse, size=(side, side), mode="bicubic").clamp(0, 1)


def brute_force(guess, truth):
    """One image, every candidate, least squares by numpy over the pixels that overlap."""
    guess, truth = (part.numpy().astype(np.float64) for part in (guess, truth))
    channels, height, width = truth.shape
    best, lowest = guess, ((guess - truth) ** 2).mean()
    for picture in (guess, guess[:, :, ::-1]):
        for down in range(-2, 3):
            for right in range(-2, 3):
                candidate = np.empty_like(truth)
                for c in range(channels):
                    seen, wanted = [], []
                    for i in range(height):
                        for j in range(width):
                            if 0 <= i - down < height and 0 <= j - right < width:
                                seen.append([picture[c, i - down, j - right], 1.0])
                                wanted.append(truth[c, i, j])
                    gain, offset = np.linalg.lstsq(np.array(seen), np.array(wanted), rcond=None)[0]
                    for i in range(height):
                        for j in range(width):
                            near = min(max(i - down, 0), height - 1), min(max(j - right, 0), width - 1)
                            candidate[c, i, j] = min(max(gain * picture[c, *near] + offset, 0), 1)
                error = ((candidate - truth) ** 2).mean()
                if error < lowest:
                    best, lowest = candidate, error
    return best, lowest


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_brute_force(seed):
    truth = pictures(1, channels=2, side=12, seed=seed)
    noise = 0.1 * torch.randn(truth.shape, generator=torch.Generator().manual_seed(seed))
    guess = (0.6 * moved(truth.flip(3), 1, seed - 1) + 0.2 + noise).clamp(0, 1)
    found = aligned(guess, truth)
    expected, lowest = brute_force(guess[0], truth[0])
    np.testing.assert_allclose(found[0].numpy(), expected, atol=1e-4)
    assert mse(found, truth).item() == pytest.approx(lowest, abs=1e-6)


@pytest.mark.parametrize("down", [-2, 1])
@pytest.mark.parametrize("right", [-2, 0, 2])
@pytest.mark.parametrize("gain", [0.5, -0.7])
def test_a_mirrored_moved_and_recoloured_picture_is_seen_through(down, right, gain):
    truth = pictures(5)
    hidden = gain * moved(truth, down, right).flip(3) + (0.2 if gain > 0 else 0.9)
    found = aligned(hidden, truth)
    torch.testing.assert_close(found[..., 2:-2, 2:-2], truth[..., 2:-2, 2:-2], atol=1e-4, rtol=0)


def test_each_channel_has_its_own_gain():
    truth = pictures(3)
    hidden = truth * torch.tensor([0.9, 0.5, 0.1])[:, None, None] + torch.tensor([0.0, 0.3, 0.8])[:, None, None]
    torch.testing.assert_close(aligned(hidden, truth), truth, atol=1e-4, rtol=0)


def test_never_worse_than_not_aligned(fashion):
    truth = fashion.test[:200].pixels()
    guesses = [fashion.test[200:400].pixels(), torch.rand_like(truth), truth.mean(0).expand_as(truth), 3 * truth - 1]
    for guess in guesses:
        found = aligned(guess, truth)
        assert (mse(found, truth) <= mse(guess, truth)).all()
        assert found.min() >= 0 and found.max() <= 1


def test_a_perfect_copy_is_returned_as_it_is():
    truth = pictures(4)
    assert torch.equal(aligned(truth, truth), truth)


def test_a_constant_guess_becomes_the_mean_colour_and_no_more():
    truth = pictures(6)
    found = aligned(torch.full_like(truth, 0.3), truth)
    torch.testing.assert_close(found, truth.mean((2, 3), keepdim=True).expand_as(truth), atol=1e-5, rtol=0)


def test_a_guess_without_structure_gains_little_over_the_mean_colour():
    truth = pictures(50, side=32)
    guess = torch.rand(truth.shape, generator=torch.Generator().manual_seed(1))
    best_constant = truth.var((2, 3), correction=0).mean(1)
    assert (mse(aligned(guess, truth), truth) > 0.9 * best_constant).all()


def test_each_image_is_aligned_by_itself():
    truth = pictures(70, channels=1)
    guess = moved(truth, 1, 1)
    guess[::2] = guess[::2].flip(3)
    alone = torch.cat([aligned(guess[i : i + 1], truth[i : i + 1]) for i in range(70)])
    torch.testing.assert_close(aligned(guess, truth), alone)


def test_a_picture_smaller_than_the_moves_is_still_aligned():
    truth = torch.rand(2, 1, 2, 2)
    found = aligned(1 - truth, truth)
    assert found.isfinite().all() and (mse(found, truth) <= mse(1 - truth, truth)).all()


def test_only_the_pixels_still_covered_decide_the_colour():
    truth = pictures(2)
    seen = moved(truth, 2, -1)
    seen[:, :, :2] = 0.0
    seen[:, :, :, -1] = 1.0
    fitted = recoloured(seen, moved(0.5 * truth + 0.1, 2, -1), 2, -1)
    torch.testing.assert_close(fitted[..., 2:, :-1], 0.5 * seen[..., 2:, :-1] + 0.1, atol=1e-5, rtol=0)
