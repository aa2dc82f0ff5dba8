"""How much less a defence lets an attacker describe: paired with the undefended twin, nothing without one."""

import json

import numpy as np
import pytest

from attcem.compare.tables import FORMATS, opening
from attcem.runs.described import PER_IMAGE
from tests.compare.planted import IMAGES, bound, made, noise, quickly
from tests.report.made import described


def told(run, share):
    """All attributes of the first so many pictures."""
    run.per_image[PER_IMAGE] = (np.arange(IMAGES) < share * IMAGES).astype(np.float32)
    run.probes = described(share)
    return run


def runs(seeds=(0,), bare=True):
    found = []
    for seed in seeds:
        found += [told(made({}, 0.9, 0.02, seed), 0.8)] * bare
        found += [told(made(noise(1), 0.8, 0.03, seed), 0.5), told(made(bound(1), 0.8, 0.04, seed), 0.2)]
    return found


def test_the_drop_is_the_headline_after_the_flags():
    flagged = runs()
    flagged[0].flags = ["short"]
    comparison = quickly(flagged, at_accuracy=0.8)
    first, second, third = opening(comparison)[:3]
    assert first.startswith("flagged")
    assert second.startswith("noise: all attributes of a picture are told right at once for 50.0 %, undefended 80.0 %")
    assert "a drop of 30.0 points (95 % interval" in second and "chance 5.0 %" in second and "60.0 points" in third
    drop = comparison.drops["noise"]
    assert 0.15 < drop.low < 0.3 < drop.high < 0.45
    assert json.loads(FORMATS["json"](comparison))["drops"]["noise"]["undefended"] == pytest.approx(0.8)


def test_between_two_strengths_it_lies_on_the_line_between_them():
    more = [*runs(), told(made(noise(2), 0.7, 0.05), 0.1)]
    assert quickly(more, at_accuracy=0.75).drops["noise"].described == pytest.approx(0.3)


def test_every_seed_is_paired_with_its_own_undefended_run():
    drop = quickly(runs((0, 1, 2)), at_accuracy=0.8).drops["noise"]
    assert (drop.described, drop.undefended) == pytest.approx((0.5, 0.8))


def test_there_is_none_without_an_undefended_run_or_where_one_was_not_asked():
    assert not quickly(runs(bare=False), at_accuracy=0.8).drops
    older = runs()
    del older[0].per_image[PER_IMAGE]
    assert not quickly(older, at_accuracy=0.8).drops
    half = runs()
    del half[1].per_image[PER_IMAGE]
    assert list(quickly(half, at_accuracy=0.8).drops) == ["noise + bound"]
