"""Whole classes are dealt: the attacker's people are none of the device's, and nobody's are in no other part."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from attcem.config import DataConfig, Experiment
from attcem.data import load_data
from attcem.data.source import Source
from attcem.data.strangers import deal, partition_people
from attcem.types.mapped import MEMORY
from tests.data import tiny_archives as tiny

PEOPLE, PHOTOS = 10, 12


@pytest.fixture
def source() -> Source:
    names = tuple(f"person {number}" for number in range(PEOPLE))
    y = np.arange(PEOPLE * PHOTOS) % PEOPLE
    return Source(tiny.pictures(PEOPLE * PHOTOS, 28, 28, 1), y, class_names=names)


def dealt(source, seed=0, **options):
    return partition_people(source, "people", seed=seed, memory=MEMORY, **options)


def test_nobody_is_in_the_hands_of_two(source):
    data = dealt(source)
    device = set(data.private.y.tolist())
    attacker, nobody = (set(images.y.tolist()) for images in (data.public, data.strangers))
    assert data.draw["people"] == {"device": 3, "attacker": 3, "nobody": 4}
    assert [len(who) for who in (device, attacker, nobody)] == [3, 3, 4]
    assert device | attacker | nobody == set(range(PEOPLE))
    assert set(data.test.y.tolist()) == set(data.validation.y.tolist()) == device
    assert sum(map(len, (data.private, data.validation, data.test))) == 3 * PHOTOS
    for images in (data.private, data.public, data.strangers):
        row = (torch.from_numpy(source.x_train) == images.x[0]).flatten(1).all(1).nonzero().item()
        assert images.y[0] == source.y_train[row]


def test_the_seed_decides(source):
    assert torch.equal(dealt(source).public.y, dealt(source).public.y)
    assert any(set(dealt(source, seed=s).public.y.tolist()) != set(dealt(source).public.y.tolist()) for s in (1, 2))


@pytest.mark.parametrize("of_all", [False, True], ids=["of training images", "of all"])
def test_an_official_test_set_and_groups_keep_to_the_device_s_people(source, of_all):
    test = tiny.pictures(40, 28, 28, 1, seed=5)
    group = np.arange(len(source.y_train) + 40 * of_all)
    data = dealt(replace(source, x_test=test, y_test=np.arange(40) % PEOPLE, group=group))
    assert len(data.test) == 12 and set(data.test.y.tolist()) == set(data.private.y.tolist())


def test_too_few_people_to_deal():
    with pytest.raises(ValueError, match="at least 6 classes"):
        deal(5, 0)


def test_a_configuration_without_strangers_is_written_as_before():
    assert "strangers" not in Experiment().to_dict()["data"]
    assert Experiment(data=DataConfig(strangers=True)).to_dict()["data"]["strangers"] is True


def test_loaded_by_name(tmp_path, source):
    path = source.write(tmp_path / "own.npz")
    assert load_data(f"npz:{path}", strangers=True).strangers is not None
    assert load_data(f"npz:{path}").strangers is None
