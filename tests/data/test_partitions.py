"""The draw: disjoint, by groups, by class, the same for the same seed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.data import load_data
from attcem.data.partitions import cut, draw, fingerprint, partition
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
    fractions = FRACTIONS | {"public": public}
    indices, dropped = draw(labels, group, tested, seed, fractions)
    together = np.concatenate(list(indices.values()))
    assert len(set(together.tolist())) == len(together) == len(labels) + tested - dropped
    home: dict[int, set[str]] = {}
    for key, part in indices.items():
        for index in part[part < len(group)]:
            home.setdefault(int(group[index]), set()).add(key)
    assert all(len(keys) == 1 for keys in home.values())
    missing = set(range(len(labels))) - set(together.tolist())
    assert {int(group[index]) for index in missing} <= set(group[len(labels) :].tolist())
    assert fingerprint(draw(labels, group, tested, seed, fractions)[0]) == fingerprint(indices)
    assert {key: set(part.tolist()) for key, part in indices.items()} == drawn_by_hand(
        labels.tolist(), group.tolist(), tested, seed, fractions
    )


@given(sizes=st.lists(st.integers(1, 9), min_size=4, max_size=30), shares=st.lists(st.floats(0.01, 0.99), max_size=3))
def test_every_piece_of_a_row_gets_a_group(sizes, shares):
    assert sorted(set(cut(np.array(sizes), shares).tolist())) == list(range(len(shares) + 1))


def test_shares_are_met_in_every_class():
    labels = np.repeat([0, 1], [100, 1000])
    indices, _ = draw(labels, None, 0, 0, FRACTIONS)
    counts = {key: np.bincount(labels[part]).tolist() for key, part in indices.items()}
    assert counts == {"test": [20, 200], "public": [20, 200], "validation": [6, 60], "private": [54, 540]}


def source(count=40, **more) -> Source:
    return Source(np.zeros((count, 28, 28), np.uint8), np.arange(count) % 2, **more)


def test_training_images_with_a_group_in_test_are_dropped():
    group = np.concatenate([np.arange(40), [0, 1, 2, 77]])
    data = partition(source(x_test=np.ones((4, 28, 28), np.uint8), y_test=np.array([0, 1, 0, 1]), group=group), "own")
    assert data.draw["dropped"] == 3 and sum(data.draw["sizes"].values()) == 41
    assert data.draw["fractions"]["test"] is None and data.test.x.min() == 1 and data.private.x.max() == 0


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
