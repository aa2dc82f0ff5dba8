"""The one-gather augmentation against padding, cropping and flipping image by image."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.data.loader import NO_AUGMENT, Augment, Loader, in_order, shift_flip
from attcem.types import Images
from tests.conftest import noise_images


def one_by_one(x, pick, down, right, flip, pad=6):
    """Mirror-pad, cut the shifted window out, flip it: the slow, obvious way."""
    found = []
    for i, d, r, f in zip(pick.tolist(), down.tolist(), right.tolist(), flip.tolist(), strict=True):
        padded = np.pad(x[i].numpy(), ((pad, pad), (pad, pad), (0, 0)), mode="reflect")
        h, w, _ = x[i].shape
        window = padded[pad + d : pad + d + h, pad + r : pad + r + w]
        found.append(window[:, ::-1] if f else window)
    return np.stack(found)


@settings(max_examples=30)
@given(
    size=st.tuples(st.integers(8, 20), st.integers(8, 20)),
    channels=st.sampled_from([1, 3]),
    batch=st.integers(1, 7),
    seed=st.integers(0, 9999),
)
def test_one_gather_equals_pad_crop_flip(size, channels, batch, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 256, (5, *size, channels), dtype=torch.uint8, generator=generator)
    pick = torch.randint(0, 5, (batch,), generator=generator)
    down, right = torch.randint(-6, 7, (2, batch), generator=generator)
    flip = torch.rand(batch, generator=generator) < 0.5
    fast = shift_flip(x, pick, down, right, flip)
    assert fast.dtype == torch.uint8
    assert np.array_equal(fast.numpy(), one_by_one(x, pick, down, right, flip))


def test_an_epoch_serves_every_image_once_as_floats_laid_out_channels_last():
    images = noise_images(96)
    loader = Loader(images, 32)
    batches = list(loader.epoch(0))
    assert len(batches) == len(loader) == 3
    served = torch.cat([x for x, _ in batches])
    assert served.dtype == torch.float32 and served.min() >= 0 and served.max() <= 1
    assert batches[0][0].is_contiguous(memory_format=torch.channels_last)
    assert loader.x.dtype == torch.uint8
    key = lambda x: sorted((x * 255).round().long().flatten(1).sum(1).tolist())  # noqa: E731
    assert key(served) == key(images.pixels())


def test_labels_stay_with_their_images():
    images = Images(
        torch.arange(60, dtype=torch.uint8).view(60, 1, 1, 1).expand(60, 28, 28, 1).contiguous(), torch.arange(60)
    )
    for x, y in Loader(images, 16, augment=Augment()).epoch(3):
        assert torch.equal((x[:, 0, 5, 5] * 255).round().long(), y)


def test_the_order_depends_on_seed_and_epoch_only():
    images = noise_images(64)
    make = lambda seed: Loader(images, 16, augment=Augment(), seed=seed)  # noqa: E731
    run = lambda loader, epoch: torch.cat([x for x, _ in loader.epoch(epoch)])  # noqa: E731
    loader = make(0)
    list(loader.epoch(0))
    torch.manual_seed(123)
    assert torch.equal(run(loader, 1), run(make(0), 1))
    assert not torch.equal(run(loader, 1), run(loader, 2)) and not torch.equal(run(loader, 1), run(make(1), 1))


def test_flips_are_half_and_shifts_cover_the_range():
    ramp = torch.arange(28, dtype=torch.uint8).view(1, 1, 28, 1).expand(2000, 28, 28, 1).contiguous()
    loader = Loader(Images(ramp, torch.zeros(2000, dtype=torch.long)), 500, augment=Augment(crop=4))
    middle = torch.cat([(x[:, 0, 0, 13] * 255).round() - (x[:, 0, 0, 14] * 255).round() for x, _ in loader.epoch(0)])
    assert 0.45 < (middle > 0).float().mean() < 0.55
    column = torch.cat([(x[:, 0, 0, 13] * 255).round() for x, _ in loader.epoch(0)])
    assert {9, 17} <= set(column.int().tolist())


def test_a_set_smaller_than_a_batch_is_one_batch():
    assert [len(y) for _, y in Loader(noise_images(5), 32).epoch(0)] == [5]


def test_in_order_gives_everything_as_it_is():
    images = noise_images(50)
    parts = list(in_order(images, 16))
    assert torch.equal(torch.cat([x for x, _ in parts]), images.pixels()) and [len(y) for _, y in parts] == [
        16,
        16,
        16,
        2,
    ]


def test_in_order_takes_fewer_large_images_at_once():
    large = Images(torch.zeros(45, 224, 224, 1, dtype=torch.uint8), torch.zeros(45, dtype=torch.long))
    assert [len(y) for _, y in in_order(large)] == [20, 20, 5]
    assert [len(y) for _, y in in_order(large, 30)] == [20, 20, 5]
    assert not list(in_order(large[:0]))


def test_what_does_not_fit_where_the_network_is_stays_where_it_lies():
    images = noise_images(8)
    little = Images(images.x, images.y, memory=images.x.nbytes - 1)
    loader = Loader(little, 4, device="meta")
    assert loader.x.device.type == "cpu"
    assert {x.device.type for x, _ in loader.epoch(0)} == {"meta"}
    assert Loader(images, 4, device="meta").x.device.type == "meta"


@pytest.mark.parametrize(
    ("options", "named"), [({"batch": 0}, "at least 1"), ({"batch": 4, "augment": Augment(28)}, "smaller")]
)
def test_wrong_options_are_named(options, named):
    with pytest.raises(ValueError, match=named):
        Loader(noise_images(8), **options)


def test_no_augmentation_is_the_default():
    assert Loader(noise_images(8), 4).augment == NO_AUGMENT
