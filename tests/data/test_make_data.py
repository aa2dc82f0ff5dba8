"""Data of one's own: every form is read as it is meant, or refused with what to give instead."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import attcem

SIZE = 28


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    """Of noise, so that none resembles another."""
    return np.random.default_rng(0).integers(0, 256, (60, SIZE, SIZE, 3)).astype(np.uint8)


LABELS = np.arange(60) % 3


class Pairs(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):  # as most do, it never stops an iteration
        return self.items[index % len(self.items)]


class Stream(IterableDataset):
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


class Columns:
    """What a Hugging Face dataset looks like from outside."""

    def __init__(self, rows, **features):
        self.rows, self.features, self.column_names = rows, features, list(rows[0])

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]


def floats(pictures) -> torch.Tensor:
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).float() / 255


FORMS = {
    "uint8 arrays, channels last": lambda x, y: (x, y),
    "uint8 arrays, channels first": lambda x, y: (x.transpose(0, 3, 1, 2), y),
    "float tensors, channels first": lambda x, y: (floats(x), torch.from_numpy(y)),
    "float arrays, channels last": lambda x, y: (x / 255, y.tolist()),
    "whole numbers": lambda x, y: [x.astype(np.int32), y.astype(np.uint8)],
    "a TensorDataset": lambda x, y: TensorDataset(floats(x), torch.from_numpy(y)),
    "a Dataset of pictures": lambda x, y: Pairs([(Image.fromarray(one), int(c)) for one, c in zip(x, y, strict=True)]),
    "a stream": lambda x, y: Stream([(one, c) for one, c in zip(floats(x), y, strict=True)]),
    "a DataLoader": lambda x, y: DataLoader(TensorDataset(floats(x), torch.from_numpy(y)), batch_size=7),
    "a DataLoader of single items": lambda x, y: DataLoader(
        TensorDataset(floats(x), torch.from_numpy(y)), batch_size=None
    ),
    "columns": lambda x, y: Columns(
        [{"id": "a", "img": Image.fromarray(one), "label": int(c)} for one, c in zip(x, y, strict=True)],
        id=None,
        img=None,
        label=SimpleNamespace(names=["cat", "dog", "owl"]),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_parts(form, pictures):
    expected = attcem.make_data((pictures, LABELS))
    found = attcem.make_data(FORMS[form](pictures, LABELS))
    for part in ("private", "validation", "public", "test"):
        assert torch.equal(getattr(found, part).x, getattr(expected, part).x), part
        assert torch.equal(getattr(found, part).y, getattr(expected, part).y), part
    assert found.class_names == (("cat", "dog", "owl") if form == "columns" else ("0", "1", "2"))


def test_labels_are_numbered_without_gaps_over_all_parts(pictures):
    data = attcem.make_data((pictures[:40], 2 * LABELS[:40] + 5), test=(pictures[40:], 2 * LABELS[40:] + 5))
    assert data.classes == 3 and data.class_names == ("5", "7", "9")
    assert torch.equal(data.test.y, torch.from_numpy(LABELS[40:]))
    assert set(data.private.y.tolist()) == {0, 1, 2}


def test_given_parts_stay_as_they_are_and_what_they_share_is_dropped(pictures):
    x, y = pictures, LABELS
    given = {
        "test": (x[40:50], y[40:50]),
        "public": (x[45:60], y[45:60]),  # five of them are tested
        "validation": (x[30:40], y[30:40]),
    }
    data = attcem.make_data((x[:32], y[:32]), **given)  # two of them validate
    assert torch.equal(data.test.x, torch.from_numpy(x[40:50]))
    assert torch.equal(data.public.x, torch.from_numpy(x[50:60]))
    assert torch.equal(data.validation.x, torch.from_numpy(x[30:40]))
    assert len(data.private) == 30 and data.draw["dropped"] == 7
    assert data.draw["fractions"] == {"test": None, "public": None, "validation": None}


def test_groups_and_names_are_kept(pictures):
    group = np.arange(60) // 6
    data = attcem.make_data((pictures, LABELS), group=group, class_names=["a", "b", "c", "d"])
    assert data.class_names == ("a", "b", "c", "d")
    places = {one.tobytes(): int(group[place]) for place, one in enumerate(pictures)}
    parts = [{places[one.numpy().tobytes()] for one in getattr(data, part).x} for part in ("private", "public", "test")]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])


def test_grey_pictures_among_coloured_ones_get_three_channels(pictures):
    items = [
        (Image.fromarray(one if place else one[..., 0]), int(c))
        for place, (one, c) in enumerate(zip(pictures, LABELS, strict=True))
    ]
    assert attcem.make_data(Pairs(items)).shape == (3, SIZE, SIZE)


REFUSED = {
    "normalised": (lambda x, y: (floats(x) * 2 - 1, y), "values from -1 to 1, not 0 to 1: leave out normalisation"),
    "floats to 255": (lambda x, y: (x.astype(np.float32), y), "values from 0 to 255, not 0 to 1"),
    "not finite": (
        lambda x, y: (x / 255 * np.where(np.arange(60) > 0, 1, np.nan)[:, None, None, None], y),
        "contain NaN",
    ),
    "zeros and ones": (lambda x, y: ((x > 99).astype(np.uint8), y), "nearly black: give 255"),
    "four channels": (
        lambda x, y: (np.concatenate([x, x[..., :1]], 3), y),
        r"\(60, 28, 28, 4\): no axis is the 1 or 3",
    ),
    "either end": (lambda x, y: (np.zeros((60, 3, 28, 3), np.uint8), y), "both the second and the last axis"),
    "text": (lambda x, y: (np.full((60, 28, 28), "a"), y), "images are <U1"),
    "too few labels": (lambda x, y: (x, y[:-1]), "59 labels for the 60 images"),
    "labels of several": (lambda x, y: (x, np.eye(3)[y]), r"labels are float64 of shape \(60, 3\)"),
    "sizes that differ": (
        lambda x, y: Pairs([(x[0], 0), (np.zeros((32, 30, 3), np.uint8), 1)]),
        "images of 28×28 and of 32×30 pixels: resize all to one size",
    ),
    "images alone": (lambda x, y: Pairs(list(x)), "not a pair of image and label"),
    "a path": (lambda x, y: 5, "it is int: give"),
    "nothing": (lambda x, y: Pairs([]), "it is empty"),
    "two pictures a row": (
        lambda x, y: Columns([{"a": x[0], "b": x[1], "y": 0}], a=None, b=None, y=None),
        "one must hold pictures and one class labels",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_could_be_misread_is_refused(why, pictures):
    make, advice = REFUSED[why]
    with pytest.raises(ValueError, match=advice):
        attcem.make_data(make(pictures, LABELS))


def test_the_error_names_the_part(pictures):
    with pytest.raises(ValueError, match="public: 8 labels for the 9 images"):
        attcem.make_data((pictures, LABELS), public=(pictures[:9], LABELS[:8]))
    with pytest.raises(ValueError, match="public: images have shape"):
        attcem.make_data((pictures, LABELS), public=(pictures[0, 0], LABELS))
    with pytest.raises(ValueError, match=r"public has images of \(30, 28, 3\), the training images \(28, 28, 3\)"):
        attcem.make_data((pictures, LABELS), public=(np.zeros((9, 30, 28, 3), np.uint8), LABELS[:9]))
