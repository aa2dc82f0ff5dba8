"""Per-image scores against closed forms, scikit-image and slow compositions."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import convolve2d
from skimage.data import astronaut
from skimage.metrics import mean_squared_error, peak_signal_noise_ratio, structural_similarity
from torch import nn

from attcem.metrics import METRICS, reidentified
from attcem.metrics.image import lpips_network


def fitting(pictures):
    return {name: metric for name, metric in METRICS.items() if metric.fits(pictures)}


@pytest.fixture(scope="module")
def pairs(fashion):
    truth = fashion.test[:8].pixels()
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    return (truth + 0.15 * noise).clamp(0, 1), truth


@pytest.fixture(scope="module")
def large():
    picture = torch.from_numpy(astronaut()).permute(2, 0, 1).float().div(255)
    truth = torch.stack([picture[:, 40:201, 150:330], picture[:, 200:361, 100:280]])
    noise = torch.randn(truth.shape, generator=torch.Generator().manual_seed(0))
    return (truth + 0.2 * noise).clamp(0, 1), truth


@pytest.mark.parametrize("kind", ["pairs", "large"])
def test_agrees_with_scikit_image_on_real_images_grey_and_in_colour(kind, request):
    pictures = request.getfixturevalue(kind)
    found = {name: metric(*pictures) for name, metric in fitting(pictures[0]).items()}
    for i, (a, b) in enumerate(zip(*(t.numpy().astype(np.float64) for t in pictures), strict=True)):
        ssim = structural_similarity(
            a, b, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, data_range=1.0, channel_axis=0
        )
        assert found["mse"][i].item() == pytest.approx(mean_squared_error(a, b), abs=1e-6)
        assert found["psnr"][i].item() == pytest.approx(peak_signal_noise_ratio(b, a, data_range=1.0), abs=1e-4)
        assert found["ssim"][i].item() == pytest.approx(ssim, abs=1e-4)


def slow_multiscale(a, b):
    """One channel, straight from the paper's equations."""
    offsets = np.arange(-5, 6)
    window = np.exp(-(offsets[:, None] ** 2 + offsets[None] ** 2) / (2 * 1.5**2))
    window /= window.sum()
    total = 1.0
    for scale, weight in enumerate((0.0448, 0.2856, 0.3001, 0.2363, 0.1333)):
        mean_a, mean_b = (convolve2d(part, window, "valid") for part in (a, b))
        var_a, var_b = (convolve2d(part**2, window, "valid") for part in (a, b))
        shared = convolve2d(a * b, window, "valid") - mean_a * mean_b
        likeness = (2 * shared + 9e-4) / (var_a - mean_a**2 + var_b - mean_b**2 + 9e-4)
        if scale == 4:
            likeness = likeness * (2 * mean_a * mean_b + 1e-4) / (mean_a**2 + mean_b**2 + 1e-4)
        total *= max(likeness.mean(), 0) ** weight
        odd = [(0, side % 2) for side in a.shape]
        a, b = (np.pad(part, odd, mode="edge") for part in (a, b))
        a, b = (part.reshape(part.shape[0] // 2, 2, part.shape[1] // 2, 2).mean((1, 3)) for part in (a, b))
    return total


def test_ms_ssim_is_the_product_over_five_scales(large):
    found = METRICS["ms_ssim"](*large)
    for i, (a, b) in enumerate(zip(*(t.numpy().astype(np.float64) for t in large), strict=True)):
        expected = np.mean([slow_multiscale(channel, other) for channel, other in zip(a, b, strict=True)])
        assert found[i].item() == pytest.approx(expected, abs=1e-4)


def test_ms_ssim_of_an_inverted_picture_is_zero_not_undefined(large):
    _, truth = large
    assert METRICS["ms_ssim"](1 - truth, truth).tolist() == [0, 0]


@pytest.mark.parametrize(("side", "named"), [(10, {"mse", "psnr"}), (11, {"mse", "psnr", "ssim"}), (160, None)])
def test_a_metric_is_absent_where_the_picture_is_too_small(side, named):
    found = set(fitting(torch.zeros(1, 3, side, 200))) - {"lpips"}
    assert found == (named or {"mse", "psnr", "ssim"})
    assert "ms_ssim" in fitting(torch.zeros(1, 3, 161, 200))


class SquaredLpips(nn.Module):
    def __init__(self, net, verbose):
        super().__init__()
        assert net == "alex"
        torch.rand(3)

    def forward(self, a, b):
        assert a.shape[1] == 3 and a.min() >= -1
        return (a - b).square().mean((1, 2, 3), keepdim=True) / 4


@pytest.fixture
def lpips_installed(monkeypatch):
    module = ModuleType("lpips")
    module.__spec__, module.LPIPS = ModuleSpec("lpips", None), SquaredLpips
    monkeypatch.setitem(sys.modules, "lpips", module)
    lpips_network.cache_clear()
    yield
    lpips_network.cache_clear()


def test_lpips_is_there_when_its_package_is(lpips_installed, monkeypatch):
    grey = torch.rand(2, 1, 32, 32)
    state = torch.get_rng_state()
    torch.testing.assert_close(METRICS["lpips"](grey, 1 - grey), METRICS["mse"](grey, 1 - grey))
    assert torch.equal(torch.get_rng_state(), state)
    assert "lpips" in fitting(grey) and "lpips" not in fitting(grey[..., :30])
    monkeypatch.setattr("attcem.metrics.image.find_spec", lambda name: None)
    assert "lpips" not in fitting(grey)


@settings(max_examples=20)
@given(n=st.integers(1, 4), channels=st.sampled_from([1, 3]), side=st.integers(28, 40), seed=st.integers(0, 999))
def test_ranges_and_the_perfect_copy(n, channels, side, seed):
    generator = torch.Generator().manual_seed(seed)
    truth, guess = torch.rand(2, n, channels, side, side, generator=generator)
    check_ranges(guess, truth, {"mse", "psnr", "ssim"})


def test_ranges_and_the_perfect_copy_of_large_pictures(large):
    check_ranges(*large, {"mse", "psnr", "ssim", "ms_ssim"})


def check_ranges(guess, truth, names):
    for name in names:
        metric = METRICS[name]
        scores, perfect = metric(guess, truth), metric(truth, truth)
        assert scores.shape == (len(guess),) and ((metric.lowest <= scores) & (scores <= metric.highest)).all()
        assert (perfect > scores if metric.higher_is_better else perfect < scores).all()
        assert (perfect - (metric.highest if metric.higher_is_better else metric.lowest)).abs().max() < 1e-5


def test_guesses_are_clamped_before_scoring():
    truth = torch.ones(1, 1, 28, 28)
    assert METRICS["mse"](truth + 5, truth).item() == 0


def test_each_image_is_scored_by_itself(pairs):
    guess, truth = pairs
    for metric in (METRICS["mse"], METRICS["psnr"], METRICS["ssim"]):
        alone = torch.cat([metric(guess[i : i + 1], truth[i : i + 1]) for i in range(len(truth))])
        torch.testing.assert_close(metric(guess, truth), alone)


def test_reidentification_finds_the_nearest():
    gallery = torch.eye(5).reshape(5, 1, 1, 5)
    guess = gallery.clone()
    guess[2] = gallery[3]
    assert reidentified(guess, gallery).tolist() == [1, 1, 0, 1, 1]


def test_reidentification_within_the_top_few():
    gallery = torch.arange(8.0).reshape(8, 1, 1, 1)
    guess = gallery[:4] + torch.tensor([0.1, 1.2, 2.2, 4.9]).reshape(4, 1, 1, 1)
    assert reidentified(guess, gallery).tolist() == [1, 0, 0, 0]  # 0.1, 2.2, 4.2, 7.9
    assert reidentified(guess, gallery, top=2).tolist() == [1, 0, 0, 0]
    assert reidentified(guess, gallery, top=3).tolist() == [1, 1, 0, 0]
    assert reidentified(guess, gallery, top=5).tolist() == [1, 1, 1, 1]
    assert reidentified(guess, gallery, top=99).tolist() == [1, 1, 1, 1]
