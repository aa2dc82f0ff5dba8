"""Groups of duplicates: what belongs together, and what the cache keeps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attcem.data import duplicates
from attcem.data.duplicates import duplicate_groups, join_groups
from attcem.data.source import Source


@given(st.integers(1, 12), st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=12))
def test_join_agrees_with_the_closure_of_the_relation(count, pairs):
    pairs = np.array([pair for pair in pairs if max(pair) < count], dtype=np.int64).reshape(-1, 2)
    together = np.eye(count, dtype=bool)
    for first, second in pairs:
        together[first, second] = together[second, first] = True
    for _ in range(count):
        together = together @ together
    assert join_groups(count, pairs).tolist() == together.argmax(axis=1).tolist()


@pytest.fixture
def source():
    x = np.random.default_rng(0).integers(0, 256, (12, 28, 28), dtype=np.uint8)
    x[[5, 7]] = x[2]
    return Source(x[:9], np.arange(9) % 3, np.concatenate([x[9:], x[:1]]), np.zeros(4, np.int64))


GROUPS = [0, 1, 2, 3, 4, 2, 6, 2, 8, 9, 10, 11, 0]


def test_a_group_is_known_by_its_first_picture(source):
    assert groups_of(source).tolist() == GROUPS


def groups_of(source, cache=None):
    return duplicate_groups([source.x_train, source.x_test], source.labels, cache)


def search_twice(source, cache, monkeypatch):
    """The groups of a second call, and whether it searched."""
    searches = []
    near_pairs = duplicates.near_pairs
    monkeypatch.setattr(duplicates, "near_pairs", lambda *given: searches.append(1) or near_pairs(*given))
    return groups_of(source, cache).tolist(), bool(searches)


def test_the_second_load_need_not_search(source, tmp_path, monkeypatch):
    groups_of(source, tmp_path)
    assert search_twice(source, tmp_path, monkeypatch) == (GROUPS, False)


def test_other_pixels_are_searched_anew(source, tmp_path, monkeypatch):
    groups_of(source, tmp_path)
    source.x_train[5, 0, 0] ^= 128
    assert search_twice(source, tmp_path, monkeypatch)[1]


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(file.read_bytes()[:-30]),
        lambda file: np.savez(file, other=np.arange(13)),
        lambda file: np.savez(file, groups=np.arange(12)),
        lambda file: np.savez(file, groups=np.full(13, 3)),
        lambda file: np.savez(file, groups=np.full(13, -1)),
        lambda file: np.savez(file, groups=np.arange(13.0)),
        lambda file: np.savez(file, groups=np.array([{}] * 13)),
        lambda file: np.save(file.open("wb"), np.arange(13)),
    ],
)
def test_a_damaged_cache_is_ignored_and_mended(damage, source, tmp_path, monkeypatch):
    groups_of(source, tmp_path)
    (file,) = (tmp_path / "duplicates").iterdir()
    damage(file)
    assert search_twice(source, tmp_path, monkeypatch) == (GROUPS, True)
    monkeypatch.undo()
    assert search_twice(source, tmp_path, monkeypatch) == (GROUPS, False)


def test_a_cache_that_cannot_be_written_is_no_error(source, tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert groups_of(source, tmp_path / "cache").tolist() == GROUPS
