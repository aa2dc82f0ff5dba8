"""A suite is fixed: its version tells everything that it asks, the same everywhere, and no change goes unnoticed."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace

import pytest
import torch

from attcem.attacks import EVERY_SUITE, Attack, decoder, grid, match, probe_linear, suite
from attcem.attacks.decoder import Decoder
from attcem.attacks.suite import digest, objects

SUITES = {suite.name: suite for suite in EVERY_SUITE}
"""As the package has them: other tests run a shorter smoke."""
VERSIONS = {
    "none": "none-1+0c8a7797",
    "smoke": "smoke-3+a05a5fb3",
    "glance": "glance-5+2f5637c9",
    "demo": "demo-3+468c6300",
    "quick": "quick-3+25f4fb75",
    "patient": "patient-1+7b2304d1",
    "standard": "standard-5+87ec0309",
    "full": "full-4+9e7d1879",
}
WHAT_TO_DO = (
    "suite {0} asks something else than before, so its results cannot stand beside older ones. If that is meant: raise "
    "its number in attcem/attacks/__init__.py, note the version in CHANGELOG.md and docs/audit.md, and write it here"
)


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_what_it_was_when_it_was_named(name):
    assert SUITES[name].version == VERSIONS[name], WHAT_TO_DO.format(name)


def test_every_suite_is_found_under_its_name_and_its_version_suits_a_file_and_a_table():
    assert {name: suite.name for name, suite in SUITES.items()} == {name: name for name in VERSIONS}
    assert all(re.fullmatch(r"[a-z]+-\d+\+[0-9a-f]{8}", suite.version) for suite in SUITES.values())


CHANGES = {
    "an attack gone": lambda s: replace(s, attacks={name: s.attacks[name] for name in list(s.attacks)[1:]}),
    "an attack's name": lambda s: replace(s, attacks={f"my_{name}": attack for name, attack in s.attacks.items()}),
    "a decoder's steps": lambda s: replace(s, attacks=dict(s.attacks, decoder_small=Decoder(32, 2, cycle=601))),
    "another kind of attack": lambda s: replace(s, attacks=dict(s.attacks, linear=Grey())),
    "no probes": lambda s: replace(s, probes={}),
    "a probe's steps": lambda s: replace(s, probes=dict(s.probes, linear=probe_linear.LinearProbe(steps=31))),
    "no theory": lambda s: replace(s, theory=False),
    "no stages": lambda s: replace(s, yardstick=None),
    "the yardstick's size": lambda s: replace(s, yardstick=Decoder(32, 3, cycle=400, doublings=1)),
    "the evaluator's effort": lambda s: replace(s, seen=160_001),
    "its number": lambda s: replace(s, number=s.number + 1),
}


@dataclass(frozen=True)
class Grey(Attack):
    def __call__(self, view, *, seed=0, progress=False):
        raise NotImplementedError

    brief = __call__


@pytest.mark.parametrize("change", CHANGES)
def test_any_change_is_another_version(change):
    assert CHANGES[change](SUITES["standard"]).version != SUITES["standard"].version


def test_every_setting_of_every_attack_and_probe_counts():
    """Numbers, switches and words of all objects at any depth, one at a time."""
    standard = SUITES["standard"]
    for one in {id(one): one for one in objects([standard.attacks, standard.probes, standard.yardstick])}.values():
        for name, value in vars(one).items():
            if isinstance(value, int | float | str):
                before, other = digest(one), f"{value}!" if isinstance(value, str) else value + 1
                object.__setattr__(one, name, other)
                assert digest(one) != before, (one, name)
                object.__setattr__(one, name, value)
                assert digest(one) == before


@pytest.mark.parametrize(
    ("module", "constant", "value"),
    [
        (match, "MEASURED", 129),  # of a module that only attacks of other modules use
        (grid, "PATCH", 5),
        (probe_linear, "DECAYS", (1e-4, 1e-3)),
        (suite, "RECIPE", 2),
        (decoder, "ADDED", "by hand"),
    ],
)
def test_the_constants_of_the_modules_count(module, constant, value, monkeypatch):
    before = SUITES["standard"].version
    monkeypatch.setattr(module, constant, value, raising=False)
    assert SUITES["standard"].version != before


def test_the_version_is_the_same_in_another_process_whatever_its_hashes_and_place(tmp_path):
    code = "from attcem.attacks import SUITES; print(*(suite.version for suite in SUITES.values()))"
    environment = os.environ | {"PYTHONHASHSEED": "1"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert told.stdout.split() == [suite.version for suite in SUITES.values()], told.stderr


def test_an_attack_of_ones_own_is_told_by_its_settings_or_refused():
    class Plain(Attack):
        def __init__(self, how):
            self.how = how

        __call__ = brief = Grey.__call__

    assert digest(Plain(1)) == digest(Plain(1)) != digest(Plain(2))
    with pytest.raises(ValueError, match="let an attack hold numbers"):
        digest(Plain(torch.zeros(1)))
