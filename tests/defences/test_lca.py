"""Sparse coding as a release: scale-free, before any noise, and trainable as it comes."""

import pytest
import torch
import torch.nn.functional as F

from attcem.defences import LCA, Guard, Noise, Stage
from attcem.defences.lca import SparseCoding
from attcem.models import split
from attcem.train.gradients import one_pass

LATENTS = [(4, 5, 5), (2, 1, 1), (12,), (6, 4)]


def made(latent, seed=0, dtype=torch.double, **options):
    torch.manual_seed(seed)
    defence = LCA(**options)
    defence.setup(latent=latent, classes=3, sigma=0.0)
    return defence.to(dtype)


@pytest.mark.parametrize("latent", LATENTS, ids=str)
@torch.no_grad()
def test_it_releases_the_drawing_of_each_sample_at_its_own_size(latent):
    defence, z = made(latent), torch.randn(3, *latent, dtype=torch.double)
    for sample, released in zip(z, defence.release(z), strict=True):
        size = (sum(value**2 for value in sample.flatten().tolist()) / sample.numel()) ** 0.5
        grid = (sample if len(latent) == 3 else sample.reshape(-1, 1, 1)) / size
        torch.testing.assert_close(released, size * defence.coding(grid[None])[1].reshape(latent))


def test_atoms_are_patches_of_spatial_latents_and_whole_flat_ones():
    assert made((4, 5, 5)).coding.weight.shape == (8, 4, 3, 3)
    assert made((12,), atoms=0.5).coding.weight.shape == (6, 12, 1, 1)
    assert made((2, 1, 1), atoms=0.01).coding.weight.shape == (1, 2, 3, 3)


@pytest.mark.parametrize("scale", [1e-3, 1e4])
@torch.no_grad()
def test_a_latent_can_neither_outgrow_the_threshold_nor_sink_below_it(scale):
    defence, z = made((4, 5, 5)), torch.randn(3, 4, 5, 5, dtype=torch.double)
    released = defence.release(z)
    assert released.any()
    torch.testing.assert_close(defence.release(scale * z), scale * released)


@torch.no_grad()
def test_a_higher_threshold_loses_more():
    z = torch.randn(4, 4, 5, 5, dtype=torch.double)
    lost = [(made((4, 5, 5), threshold=t, iters=50).release(z) - z).norm().item() for t in (0.0, 0.3, 1.0, 100.0)]
    assert lost == sorted(lost) and lost[0] < 0.1 * lost[-1] and lost[-1] == pytest.approx(z.norm().item())


@pytest.mark.parametrize("value", [0.0, 1e-40, 1e-10, 1e15])
def test_latents_of_any_size_have_finite_releases_and_gradients(value):
    z = (value * torch.randn(2, 4, 5, 5)).requires_grad_()
    released = made((4, 5, 5), dtype=torch.float32).release(z)
    released.sum().backward()
    assert released.isfinite().all() and z.grad.isfinite().all()


def test_one_sample_is_no_business_of_another():
    defence, z = made((4, 5, 5)), torch.randn(3, 4, 5, 5, dtype=torch.double)
    torch.testing.assert_close(defence.release(z)[:1], defence.release(z[:1]))


def test_it_comes_before_any_noise_whatever_order_is_written():
    for chain in (Noise(0.1) + LCA(), LCA() + Noise(0.1)):
        assert [type(link) for link in chain.links] == [LCA, Noise]
    assert LCA.stage is Stage.TRANSFORM and LCA().sigma == 0 and not LCA().penalises


def test_as_it_comes_it_trains_and_so_does_its_dictionary(small):
    torch.manual_seed(0)
    model, guard = split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.05), LCA()
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=0.0)
    before = guard.coding.dictionary.detach().clone()
    optimiser = torch.optim.SGD([*model.parameters(), *guard.parameters()], lr=0.05, momentum=0.9)
    x, y = small.private.pixels()[:64], small.private.y[:64]
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        losses.append(one_pass(model, Guard(guard), x, y, lambda link: link.lam).loss.item())
        optimiser.step()
    assert losses[-1] < 0.5 * losses[0]
    assert (guard.coding.dictionary - before).norm() > 0.01 * before.norm()
    assert F.cross_entropy(model.decoder(guard.release(model.encoder(x))), y).isfinite()


def test_a_flat_latent_that_is_too_wide_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match="bottleneck"):
        made((4096,))
    assert isinstance(made((2048,), atoms=0.1).coding, SparseCoding)


@pytest.mark.parametrize("options", [{"threshold": -0.1}, {"atoms": 0.0}, {"iters": 0}], ids=str)
def test_what_makes_no_sense_is_refused(options):
    with pytest.raises(ValueError, match="give"):
        LCA(**options)
