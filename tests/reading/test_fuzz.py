"""Whatever is wrong with a file of a run, its reader raises a ValueError or gives a right answer."""

import random

import pytest

from tests.reading.fuzz import READERS, damage
from tests.reading.whole import make_run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("run")
    make_run(made)
    return made


@pytest.mark.parametrize("name", READERS)
def test_a_whole_folder_is_read(folder, name):
    READERS[name].read(folder)


@pytest.mark.parametrize("name", READERS)
def test_damage_is_a_value_error_or_does_not_matter(folder, name):
    assert not list(damage(folder, name, range(-(-READERS[name].cases // 5))))


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_damage_that_nobody_has_tried_yet(folder, name):
    """Fifty times as many cases, new ones each time; `damage(folder, name, range(n, n + 1))` repeats the case n."""
    start = random.SystemRandom().randrange(1, 10**6) * 10**4
    assert not list(damage(folder, name, range(start, start + 10 * READERS[name].cases)))
