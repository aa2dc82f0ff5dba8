"""Per-image scores against closed forms and scikit-image."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity

from attcem.metrics import METRICS, reidentified


@pytest.fixture(scope="module")
def pairs(fashion):
    truth = fashion.test[:8].pixels()
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    return (truth + 0.15 * noise).clamp(0, 1), truth


def test_agrees_with_scikit_image_on_real_images(pairs):
    guess, truth = (t.squeeze(1).numpy().astype(np.float64) for t in pairs)
    found = {name: metric(*pairs) for name, metric in METRICS.items()}
    for i, (a, b) in enumerate(zip(guess, truth, strict=True)):
        ssim = structural_similarity(
            a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0, win_size=11
        )
        assert found["mse"][i].item() == pytest.approx(mean_squared_error(a, b), abs=1e-6)
        assert found["psnr"][i].item() == pytest.approx(peak_signal_noise_ratio(b, a, data_range=1.0), abs=1e-3)
        assert found["ssim"][i].item() == pytest.approx(ssim, abs=1e-4)


@settings(max_examples=20, deadline=None)
@given(n=st.integers(1, 4), channels=st.sampled_from([1, 3]), side=st.integers(28, 40), seed=st.integers(0, 999))
def test_ranges_and_the_perfect_copy(n, channels, side, seed):
    generator = torch.Generator().manual_seed(seed)
    truth, guess = torch.rand(2, n, channels, side, side, generator=generator)
    for metric in METRICS.values():
        scores, perfect = metric(guess, truth), metric(truth, truth)
        assert scores.shape == (n,) and ((metric.lowest <= scores) & (scores <= metric.highest)).all()
        assert (perfect > scores if metric.higher_is_better else perfect < scores).all()


def test_guesses_are_clamped_before_scoring():
    truth = torch.ones(1, 1, 28, 28)
    assert METRICS["mse"](truth + 5, truth).item() == 0


def test_each_image_is_scored_by_itself(pairs):
    guess, truth = pairs
    for metric in METRICS.values():
        alone = torch.cat([metric(guess[i : i + 1], truth[i : i + 1]) for i in range(len(truth))])
        torch.testing.assert_close(metric(guess, truth), alone)


def test_reidentification_finds_the_nearest():
    gallery = torch.eye(5).reshape(5, 1, 1, 5)
    guess = gallery.clone()
    guess[2] = gallery[3]
    assert reidentified(guess, gallery).tolist() == [1, 1, 0, 1, 1]
