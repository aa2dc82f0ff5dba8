"""The draw: disjoint, by groups, by class, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.data import load_data
from attcem.data.partitions import PARTITIONS, cut, draw, fingerprint, partition
from attcem.data.source import Source

FRACTIONS = {"test": 0.2, "public": 0.25, "validation": 0.1}


def drawn_by_hand(labels, group, tested, seed, fractions):
    """The draw again as the obvious loop over images and groups."""
    keys = np.random.PCG64(seed).random_raw(len(labels))
    in_test = set(group[len(labels) :])
    rows: dict[int, dict[int, list[int]]] = {}
    for index in range(len(labels)):
        if group[index] not in in_test:
            first = next(i for i in range(len(labels)) if group[i] == group[index])
            rows.setdefault(labels[first], {}).setdefault(first, []).append(index)
    names = ["public", "validation"] if tested else ["test", "public", "validation"]
    parts = {key: set() for key in ("test", "public", "validation", "private")}
    parts["test"] |= set(range(len(labels), len(labels) + tested))
    for groups in rows.values():
        waiting = sorted(groups, key=lambda first: keys[first])
        for later, name in zip(range(len(names), 0, -1), names, strict=True):
            total = sum(len(groups[first]) for first in waiting)
            best = None
            for count in range(1, len(waiting) - later + 1):
                miss = abs(sum(len(groups[first]) for first in waiting[:count]) - fractions[name] * total)
                best = (miss, count) if best is None or miss < best[0] else best
            for first in waiting[: best[1] if best else 0]:
                parts[name] |= set(groups[first])
            waiting = waiting[best[1] if best else 0 :]
        parts["private"] |= {index for first in waiting for index in groups[first]}
    return parts


@st.composite
def sources(draw_from):
    count = draw_from(st.integers(2, 40))
    tested = draw_from(st.integers(0, 10))
    labels = np.array(draw_from(st.lists(st.integers(0, 4), min_size=count, max_size=count)))
    length = count + tested * draw_from(st.booleans())
    group = np.array(draw_from(st.lists(st.integers(0, 25), min_size=length, max_size=length)))
    return labels, group, tested


@settings(max_examples=150)
@given(source=sources(), seed=st.integers(0, 2**32), public=st.floats(0.05, 0.95))
def test_every_image_is_in_one_part_or_dropped_and_groups_stay_together(source, seed, public):
    labels, group, tested = source
    alone = group.max() + 1 + np.arange(len(labels) + tested - len(group))
    group, given = np.concatenate([group, alone]), {"test": tested} if tested else {}
    fractions = FRACTIONS | {"public": public}
    indices, dropped = draw(labels, group, given, seed, fractions)
    together = np.concatenate(list(indices.values()))
    assert len(set(together.tolist())) == len(together) == len(labels) + tested - dropped
    home: dict[int, set[str]] = {}
    for key, part in indices.items():
        for index in part[part < len(group)]:
            home.setdefault(int(group[index]), set()).add(key)
    assert all(len(keys) == 1 for keys in home.values())
    missing = set(range(len(labels))) - set(together.tolist())
    assert {int(group[index]) for index in missing} <= set(group[len(labels) :].tolist())
    assert fingerprint(draw(labels, group, given, seed, fractions)[0]) == fingerprint(indices)
    assert {key: set(part.tolist()) for key, part in indices.items()} == drawn_by_hand(
        labels.tolist(), group.tolist(), tested, seed, fractions
    )


@given(sizes=st.lists(st.integers(1, 9), min_size=4, max_size=30), shares=st.lists(st.floats(0.01, 0.99), max_size=3))
def test_every_piece_of_a_row_gets_a_group(sizes, shares):
    assert sorted(set(cut(np.array(sizes), shares).tolist())) == list(range(len(shares) + 1))


def test_shares_are_met_in_every_class():
    labels = np.repeat([0, 1], [100, 1000])
    indices, _ = draw(labels, None, {}, 0, FRACTIONS)
    counts = {key: np.bincount(labels[part]).tolist() for key, part in indices.items()}
    assert counts == {"test": [20, 200], "public": [20, 200], "validation": [6, 60], "private": [54, 540]}


def pictures(count, seed=0):
    return np.random.default_rng(seed).integers(0, 128, (count, 28, 28), dtype=np.uint8)


def source(count=40, **more) -> Source:
    return Source(pictures(count), np.arange(count) % 2, **more)


def test_training_images_with_a_group_in_test_are_dropped():
    group = np.concatenate([np.arange(40), [0, 1, 2, 77]])
    data = partition(source(x_test=255 - pictures(4, seed=1), y_test=np.array([0, 1, 0, 1]), group=group), "own")
    assert data.draw["dropped"] == 3 and sum(data.draw["sizes"].values()) == 41
    assert data.draw["fractions"]["test"] is None and data.test.x.min() > 127 and data.private.x.max() < 128


@pytest.mark.parametrize("fraction", [0, 1, -0.5, float("nan")])
@pytest.mark.parametrize("key", ["public", "validation", "test"])
def test_impossible_fractions(key, fraction):
    with pytest.raises(ValueError, match=key):
        load_data("fashion", **{key: fraction})


def test_negative_seed():
    with pytest.raises(ValueError, match="seed"):
        load_data("fashion", seed=-1)


def test_too_few_images_for_four_parts():
    with pytest.raises(ValueError, match="part would be empty"):
        partition(source(4), "own")


def images_of(data):
    return {key: {image.numpy().tobytes() for image in getattr(data, key).x} for key in PARTITIONS}


def test_copies_never_straddle(tmp_path):
    once = pictures(100)
    np.savez(tmp_path / "own.npz", x_train=np.tile(once, (4, 1, 1)), y_train=np.tile(np.arange(100) % 2, 4))
    data = load_data(f"npz:{tmp_path / 'own.npz'}")
    parts = images_of(data)
    assert sum(map(len, parts.values())) == len(set().union(*parts.values())) == 100
    assert data.draw["duplicates"] == sum(data.draw["sizes"].values()) == 400 and data.draw["dropped"] == 0


def test_copies_under_two_labels_stay_on_one_side():
    data = partition(Source(np.repeat(pictures(40), 2, axis=0), np.arange(80) % 2), "own")
    parts = images_of(data)
    assert sum(map(len, parts.values())) == len(set().union(*parts.values())) == 40


def test_copies_of_official_test_images_are_dropped_and_counted():
    x = pictures(60)
    tested = np.concatenate([x[:7], pictures(3, seed=1)])
    data = partition(Source(x, np.arange(60) % 2, tested, np.arange(10) % 2), "own")
    assert data.draw["dropped"] == 7 and data.draw["duplicates"] == 14 and len(data.test) == 10
    parts = images_of(data)
    assert all(not parts["test"] & parts[key] for key in PARTITIONS if key != "test")


def test_given_groups_and_duplicates_are_joined():
    x = pictures(60)
    x[1] = x[30]  # links the groups of 0 and of 30
    group = np.arange(60)
    group[[0, 1]], group[[30, 31]] = 0, 30
    data = partition(Source(x, np.arange(60) % 2, group=group), "own")
    (home,) = {key for key, images in images_of(data).items() if images & {x[i].tobytes() for i in (0, 1, 30, 31)}}
    assert home in PARTITIONS and data.draw["duplicates"] == 2


def test_without_duplicates_the_draw_is_that_of_the_labels_alone():
    data = partition(source(80), "own", seed=5)
    assert data.draw["sha256"] == fingerprint(draw(np.arange(80) % 2, None, {}, 5, FRACTIONS)[0])
    assert data.draw["duplicates"] == 0
