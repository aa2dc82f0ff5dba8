"""Pruning silences the channels it says, once, for good, and nothing else."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attcem.defences import Pruning
from attcem.defences.pruning import channel_layers, importance
from attcem.models import split
from attcem.train import fit


@pytest.fixture
def encoder() -> nn.Module:
    torch.manual_seed(0)
    return split("vgg11_bn", shape=(1, 28, 28), classes=4, cut=4, bottleneck=3, width=0.1).encoder.eval()


def outputs(encoder, x):
    """What each inner layer's complete channels are."""
    found = []
    hooks = [layer.register_forward_hook(lambda *_: found.append(_[2])) for *_, layer in channel_layers(encoder)]
    encoder(x)
    for hook in hooks:
        hook.remove()
    return found


def test_the_layer_that_makes_the_latent_is_left_alone_and_batch_norm_completes_a_channel(encoder):
    layers = list(channel_layers(encoder))
    convolutions = [layer for layer in encoder.modules() if isinstance(layer, nn.Conv2d)]
    assert [layer for _, layer, _ in layers] == convolutions[:-1]
    assert all(isinstance(complete, nn.BatchNorm2d) for *_, complete in layers)


def test_importance_is_the_size_of_a_filter_times_its_gain():
    layer, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    nn.init.uniform_(norm.weight, -1, 1)
    for channel in range(3):
        size = sum(abs(float(w)) for w in layer.weight[channel].flatten())
        assert importance(layer, layer)[channel].item() == pytest.approx(size, rel=1e-5)
        assert importance(layer, norm)[channel].item() == pytest.approx(
            size * abs(float(norm.weight[channel])), rel=1e-5
        )


def test_exactly_the_least_important_channels_fall_silent_and_only_once(encoder):
    pruning, x = Pruning(keep=0.5), torch.rand(4, 1, 28, 28)
    pruning.attach(encoder, None)
    before = [output.clone() for output in outputs(encoder, x)]
    expected = [set(importance(a, b).argsort()[: len(a.weight) // 2].tolist()) for _, a, b in channel_layers(encoder)]
    pruning.review([])
    for new, gone in zip(outputs(encoder, x), expected, strict=True):
        assert {c for c in range(new.shape[1]) if not new[:, c].any()} >= gone
    assert pruning.silenced == sum(map(len, expected))
    stays = [channel for channel in range(before[0].shape[1]) if channel not in expected[0]]
    assert torch.equal(before[0][:, stays], outputs(encoder, x)[0][:, stays])
    for *_, complete in channel_layers(encoder):
        complete.weight.data = complete.weight.data.flip(0)
    masks = [mask.clone() for mask in pruning.buffers()]
    pruning.review([])
    assert all(torch.equal(a, b) for a, b in zip(masks, pruning.buffers(), strict=True))


def test_silencing_channels_that_said_nothing_changes_nothing(encoder):
    for _, layer, complete in channel_layers(encoder):
        quiet = slice(0, len(layer.weight) // 2)
        layer.weight.data[quiet] = 0
        complete.weight.data[quiet], complete.bias.data[quiet] = 0, 0
    pruning, x = Pruning(keep=0.5), torch.rand(4, 1, 28, 28)
    before = encoder(x)
    pruning.attach(encoder, None)
    pruning.review([])
    torch.testing.assert_close(encoder(x), before)


def test_training_goes_on_and_silent_channels_stay_silent(small):
    torch.manual_seed(0)
    model, guard = split("vgg11_bn", data=small, cut=4, bottleneck=4, width=0.1), Pruning(keep=0.5, warmup=1)
    state = fit(model, guard, small, epochs=4, progress=False)
    assert guard.silenced > 0
    for output, mask in zip(outputs(model.encoder, small.test[:8].pixels()), guard.buffers(), strict=True):
        assert not output[:, mask == 0].any()
    assert state.best_epoch > 2


def test_a_run_that_is_resumed_or_read_back_is_pruned_alike(small, tmp_path):
    def fitted(out, epochs, **options):
        torch.manual_seed(0)
        model, guard = split("vgg11_bn", data=small, cut=4, bottleneck=4, width=0.05), Pruning(keep=0.5, warmup=1)
        fit(model, guard, small, epochs=epochs, out=out, progress=False, **options)
        return model, guard

    model, guard = fitted(tmp_path / "whole", 2)
    again, masks = fitted(tmp_path / "whole", 2, resume=True)
    x = small.test[:8].pixels()
    assert torch.equal(again.encoder(x), model.encoder(x))
    assert masks.silenced == guard.silenced > 0


def test_nonsense_is_refused():
    for options in ({"keep": 0.0}, {"keep": 1.5}, {"warmup": 0}):
        with pytest.raises(ValueError, match="share in"):
            Pruning(**options)
    with pytest.raises(ValueError, match="cut the network deeper"):
        Pruning().attach(nn.Sequential(nn.Conv2d(1, 3, 3)))
