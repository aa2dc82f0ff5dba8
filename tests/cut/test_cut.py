"""Every place of a small network is tried, on validation images only; what is done is not done again."""

import math

import numpy as np
import pytest
import torch
import yaml

from attcem.cli import main
from attcem.configfile import parse_experiment
from attcem.cut.measure import FILE, Measured, scatter
from attcem.cut.places import places_of
from attcem.models import CROSSINGS
from attcem.sweep.perform import perform
from tests.sweep.made import write_tiny

PLACES = ["--cuts", "2", "--forms", "plain", "{vector: {channels: 4}}"]


class Here:
    """An engine without processes of its own, which would only import everything again."""

    slots = 1

    def __init__(self, jobs):
        self.ended = []

    def start(self, job):
        self.ended.append((job, perform(job)))

    def wait(self, seconds):
        ended, self.ended = self.ended, []
        return ended

    def close(self):
        pass


@pytest.fixture
def base(tmp_path):
    settings = yaml.safe_load(write_tiny(tmp_path).read_text())["base"]
    settings |= {"train": {"epochs": 1, "batch": 32}, "defence": {"noise": {"sigma": 0.3}}}
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(settings))
    return tmp_path / "base.yaml"


def test_from_the_command_line_to_the_picture(base, capsys, monkeypatch):
    """And again, with all test images replaced: nothing is trained, and nothing would have been found otherwise."""
    monkeypatch.setattr("attcem.cut.candidates.Local", Here)
    command = ["cut", str(base), *PLACES, "--suite", "smoke", "--out"]
    assert main([*command, str(base.parent / "one")]) == 0
    said = capsys.readouterr().out
    folders = sorted(base.parent.glob(f"one/*/{FILE}"))
    assert len(folders) == 2 and not list(base.parent.rglob("result.json"))
    assert "← recommended" in said and "how sure" in said and (base.parent / "one" / "cut.png").stat().st_size > 5000
    found = [Measured.read(path.parent) for path in folders]
    assert {one.values for one in found} == {4, 8 * 14 * 14} and all(one.rate_nats > 0 for one in found)
    assert all(0 < one.device_share <= 1.3 and 0 < one.inside <= 1 and one.bytes == 4 * one.values for one in found)

    before = {path: path.stat().st_mtime_ns for path in folders}
    damaged = folders[0].read_bytes()
    folders[0].write_text("{")
    with np.load(base.parent / "tiny.npz") as arrays:
        changed = dict(arrays) | {"x_test": 255 - arrays["x_test"], "y_test": 3 - arrays["y_test"]}
    np.savez(base.parent / "tiny.npz", **changed)
    assert main([*command, str(base.parent / "one")]) == 0
    assert [path for path in folders if path.stat().st_mtime_ns != before[path]] == folders[:1]
    assert folders[0].read_bytes() == damaged, "a test image had a say"


def test_every_cut_meets_every_form_and_what_does_not_fit_is_named(base):
    experiment = parse_experiment([str(base)])
    places, misfits = places_of(experiment, cuts=[13, 4, 4])
    assert [place.cut for place in places] == [4] * 6 + [13] * 6 and not misfits
    assert {place.form for place in places} == {"plain", *CROSSINGS} and places[-1].unit == "pool5"
    places, misfits = places_of(experiment, ["plain", "{attention: {grid: 5}}"], [1, 4])
    assert [(place.cut, place.form) for place in places] == [(1, "plain"), (4, "plain")]
    assert len(misfits) == 2 and "5×5 equal regions" in misfits[0]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--cuts", "14"], "cut 14 does not exist in 'vgg11_bn': choose from 1 to 13"),
        (["--forms", "vectr"], "did you mean 'vector'"),
        (["--forms", "{pool: {sise: 2}}"], "did you mean 'size'"),
        (["--forms", "null"], "give plain"),
        (["--suite", "glanse"], "did you mean 'glance'"),
        (["--lose", "2"], "--lose"),
    ],
)
def test_a_mistake_is_found_before_any_run(base, options, named, capsys):
    assert main(["cut", str(base), *options, "--out", str(base.parent / "out")]) == 2
    assert named in capsys.readouterr().err and not (base.parent / "out").exists()


def test_scatter_is_that_of_a_loop():
    z, labels = torch.randn(30, 4, generator=torch.Generator().manual_seed(0)), torch.arange(30) % 3
    slow = [((z[i] - z[labels == labels[i]].mean(0)) ** 2).mean().item() for i in range(30)]
    inside, total = scatter(z, labels, 5)
    assert inside == pytest.approx(np.mean(slow)) and total == pytest.approx(z.var(0, correction=0).mean().item())
    collapsed, _ = scatter(labels[:, None].float(), labels, 3)
    assert collapsed == 0 and math.isfinite(total)
