"""How unlikely an error is, against the Gaussian it stands for."""

from __future__ import annotations

import torch

from attcem.attacks import errors
from attcem.attacks.errors import ErrorSpectrum


def test_it_is_the_mahalanobis_distance_of_its_own_covariance():
    axes = torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64))[0]
    spectrum = ErrorSpectrum(axes[:, :3], torch.tensor([9.0, 4.0, 1.0], dtype=torch.float64), 0.25)
    covariance = axes @ torch.diag(torch.tensor([9.0, 4.0, 1.0] + [0.25] * 9, dtype=torch.float64)) @ axes.T
    away = torch.randn(5, 3, 2, 2, dtype=torch.float64)
    expected = torch.stack([e.flatten() @ torch.linalg.inv(covariance) @ e.flatten() for e in away])
    torch.testing.assert_close(spectrum(away), expected)


def test_it_finds_the_directions_of_errors_and_what_is_left():
    axis = torch.zeros(48)
    axis[7] = 1
    seen = 3 * torch.randn(4000, 1) * axis + 0.1 * torch.randn(4000, 48)
    spectrum = ErrorSpectrum.of(seen.reshape(-1, 3, 4, 4), most=1)
    assert abs(spectrum.axes[7, 0]) > 0.99
    assert abs(spectrum.variance.item() - 9) < 0.5 and abs(spectrum.left - 0.01) < 0.001
    assert abs(spectrum(seen.reshape(-1, 3, 4, 4)).mean().item() - 48) < 2


def test_with_many_errors_it_knows_their_whole_covariance():
    mixed = torch.randn(400, 12, dtype=torch.float64) @ torch.randn(12, 12, dtype=torch.float64)
    spectrum = ErrorSpectrum.of(mixed.reshape(-1, 3, 2, 2))
    assert spectrum.axes.shape == (12, 11)
    inverse = torch.linalg.inv(mixed.T @ mixed / len(mixed))
    torch.testing.assert_close(spectrum(mixed.reshape(-1, 3, 2, 2)), torch.stack([e @ inverse @ e for e in mixed]))


def test_of_large_pictures_it_finds_the_same_first_axes_without_the_covariance(monkeypatch):
    mixed = torch.randn(400, 12, dtype=torch.float64) * torch.tensor([8.0, 4.0, 2.0] + [0.1] * 9)
    whole = ErrorSpectrum.of(mixed.reshape(-1, 3, 2, 2))
    monkeypatch.setattr(errors, "EXACT", 0), monkeypatch.setattr(errors, "ROUGHLY", 3)
    few = ErrorSpectrum.of(mixed.reshape(-1, 3, 2, 2))
    assert few.axes.shape == (12, 3)
    torch.testing.assert_close(few.variance, whole.variance.flip(0)[:3], rtol=1e-6, atol=0)
    torch.testing.assert_close(few.left * 9, (whole.variance.flip(0)[3:].sum() + whole.left).item(), rtol=1e-3, atol=0)


def test_few_or_no_errors_are_no_directions():
    assert ErrorSpectrum.of(torch.zeros(3, 1, 4, 4)).axes.shape == (16, 0)
    assert ErrorSpectrum.of(torch.zeros(100, 1, 4, 4))(torch.ones(2, 1, 4, 4)).isfinite().all()
    assert torch.equal(ErrorSpectrum.even(torch.ones(2, 1, 3, 3))(torch.ones(2, 1, 3, 3)), torch.full((2,), 9.0))
