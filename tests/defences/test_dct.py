"""What is removed from the image does not reach the encoder: in training, attack, clients, files and artifact alike."""

import copy

import numpy as np
import pytest
import scipy.fft
import torch
from torch import nn

from attcem.assess.suite import guess_at, stages
from attcem.attacks import Reconstruction
from attcem.config import ClientsConfig
from attcem.defences import DCT, Guard, Noise, Reversed
from attcem.maths import zigzag
from attcem.models import split
from attcem.ship import export
from attcem.ship.graphs import open_session
from attcem.train import fit, fit_clients


def spectrum(x, block):
    """The coefficients of every block, by scipy: [..., rows, columns, vertical, horizontal]."""
    *most, h, w = x.shape
    blocks = x.reshape(*most, h // block, block, w // block, block).swapaxes(-3, -2)
    return scipy.fft.dctn(blocks, axes=(-2, -1), norm="ortho")


def network(**options):
    torch.manual_seed(0)
    return split("vgg11_bn", **{"shape": (1, 28, 28), "classes": 4, "cut": 3, "width": 0.05} | options).eval()


def guarded(model, *links):
    guard = Guard(*links)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    guard.attach(model.encoder)
    return guard.eval()


@pytest.mark.parametrize(("remove", "block", "count"), [("low", 4, 1), ("low", 8, 10), ("high", 8, 40), ("high", 2, 3)])
def test_every_block_of_every_channel_loses_these_coefficients_alone(remove, block, count):
    x = torch.rand(3, 2, 16, 32)
    found = spectrum(DCT(count, remove, block).filtered(x).numpy(), block)
    expected = spectrum(x.numpy(), block)
    for frequency in zigzag(block)[:count] if remove == "low" else zigzag(block)[-count:]:
        expected[..., frequency[0], frequency[1]] = 0
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_images_that_differ_only_in_what_is_removed_are_sent_alike_and_others_are_not():
    model = network()
    guard, x = guarded(model, DCT(count=1, block=4)), torch.rand(5, 1, 28, 28)
    brighter = x + torch.rand(5, 1, 7, 7).repeat_interleave(4, 2).repeat_interleave(4, 3)
    sent = guard.release(model.encoder(x))
    torch.testing.assert_close(guard.release(model.encoder(brighter)), sent)
    assert not torch.allclose(guard.release(model.encoder(torch.rand(5, 1, 28, 28))), sent, atol=1e-3)


def test_nothing_removed_changes_nothing_and_attaching_twice_filters_once():
    model, x = network(), torch.rand(2, 1, 28, 28)
    plain = model.encoder(x)
    guard = guarded(model, DCT(count=0, block=7))
    torch.testing.assert_close(model.encoder(x), plain)
    guard.attach(model.encoder)
    assert len(model.encoder[0]._forward_pre_hooks) == 1


def test_a_module_of_ones_own_is_filtered_too():
    x = torch.rand(2, 1, 8, 8)
    whole = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2))
    mine = split(whole, at="1", example=x)
    before = mine.encoder(DCT(block=8).filtered(x))
    guarded(mine, DCT(block=8))
    torch.testing.assert_close(mine.encoder(x), before)


def test_every_stage_of_an_audit_lacks_what_was_removed(small):
    """Before the bottleneck, too, where the encoder is taken apart."""
    model, x = network(classes=small.classes, bottleneck=2), torch.rand(3, 1, 28, 28)
    guard, seen = guarded(model, DCT(count=1)), []

    def brighten(view, *, seed):
        seen.append((view.oracle(x), view.oracle(x + 0.25), view.oracle(1 - x)))
        return Reconstruction(torch.zeros(3, 1, 28, 28))

    assert set(guess_at(stages(model, guard), brighten, small, small.test[:3], 0)) == {
        "before_bottleneck",
        "clean",
        "released",
    }
    for darker, brighter, other in seen:
        torch.testing.assert_close(brighter, darker)
        assert not torch.allclose(other, darker, atol=1e-3)


def test_trained_resumed_and_shared_with_clients_it_is_the_same_filter(small, tmp_path):
    few = small.__class__(**vars(small) | {"private": small.private[:120], "validation": small.validation[:40]})

    def trained(out, epochs, **options):
        model, guard = network(classes=small.classes), Noise(0.1) + DCT(count=2) + Reversed(channels=4, blocks=1)
        fit(model, guard, few, epochs=epochs, batch=40, out=out, progress=False, **options)
        return model

    whole = trained(tmp_path, 2)
    again, x = trained(tmp_path, 2, resume=True), torch.rand(3, 1, 28, 28)
    assert torch.equal(again.encoder(x), whole.encoder(x))
    for sync in ("epoch", "shared"):
        model, guard = network(classes=small.classes), Guard(DCT(count=1))
        fit_clients(model, guard, few, ClientsConfig(count=2, sync=sync), epochs=1, batch=40, progress=False)
        torch.testing.assert_close(model.encoder(x + 0.25), model.encoder(x), msg=sync)
        assert len(model.encoder[0]._forward_pre_hooks) == 1


def test_a_copy_of_a_device_is_filtered_as_the_device_is():
    model = network()
    guard = guarded(model, DCT(count=3))
    other, x = copy.deepcopy(model), torch.rand(2, 1, 28, 28)
    assert torch.equal(other.encoder(x), model.encoder(x))
    assert not torch.allclose(network().encoder(x), model.encoder(x), atol=1e-3)
    assert guard.release(x) is x


def test_what_is_shipped_filters(tmp_path):
    model = network()
    guard = guarded(model, DCT(count=5, remove="high", block=7), Noise(0.1))
    folder = export(model, guard, tmp_path / "artifact")
    x, noise = torch.rand(3, 1, 28, 28), torch.zeros(3, *model.latent_shape)
    session = open_session(folder / "device.onnx")
    sent = session.run(None, {"image": x.numpy(), "noise": noise.numpy()})[0]
    np.testing.assert_allclose(sent, model.encoder(x).detach(), atol=1e-5)
    filtered = session.run(None, {"image": guard.named["dct"].filtered(x).numpy(), "noise": noise.numpy()})[0]
    np.testing.assert_allclose(filtered, sent, atol=1e-5)


def test_what_does_not_fit_is_refused_with_what_does():
    for options in ({"block": 1}, {"block": 8, "count": 64}, {"count": -1}, {"remove": "middle"}, {"block": True}):
        with pytest.raises(ValueError, match="dct "):
            DCT(**options)
    with pytest.raises(ValueError, match="28×28: give 2 or 4 or 7 or 14 or 28"):
        DCT(block=8).filtered(torch.rand(1, 1, 28, 28))
    with pytest.raises(ValueError, match="crop or resize"):
        DCT(block=8).filtered(torch.rand(1, 1, 29, 31))
