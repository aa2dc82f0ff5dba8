"""Two links of one kind stay apart from training to the result, and so do those of one's own."""

import copy

import numpy as np
import pytest

from attcem import Noise, audit, create_defence, fit
from attcem.assess.record import promises
from attcem.explain.look import look
from attcem.models import split
from attcem.types import Result
from tests.probes import Shrink

PROBES = {"shrink": 2.0, "shrink-2": 3.0}


class Grumble(Shrink):
    """A probe that says something of itself, and releases nothing new."""

    def release(self, z):
        return z

    @property
    def flags(self):
        return ["grumbles"]


@pytest.fixture(scope="module")
def told(small, tmp_path_factory):
    network = split("vgg11_bn", data=small, cut=4, width=0.1, bottleneck=4)
    guard = Noise(0.1) + Noise(0.2)
    for lam in PROBES.values():
        guard += Shrink(lam=lam)
    for lam in (0.5, 0.25):
        guard += create_defence("gated", form="gates", lam=lam, warmup=0) + Grumble(lam=0)
    folder = tmp_path_factory.mktemp("two")
    state = fit(network, guard, small, epochs=1, out=folder, progress=False)
    return network, guard, state, folder


def test_history_and_penalty_keep_both(told):
    _, _, state, folder = told
    (row,) = state.history
    assert {name: row[f"{name}/weight"] for name in PROBES} == PROBES
    weights = {"gated": 0.5, "gated-2": 0.25, **PROBES}
    assert row["penalty_weight"] == pytest.approx(sum(weights.values()))
    assert row["penalty"] == pytest.approx(sum(row[f"{name}/penalty"] for name in weights), rel=1e-4)
    header = (folder / "history.csv").read_text().splitlines()[0].split(",")
    assert {"gated/dim_gate", "gated-2/dim_gate"} <= set(header)


def test_result_keeps_both(told, small):
    network, guard, state, folder = told
    assert list(state.surrogate_only) == ["gated", "gated-2"]
    result = audit(network, guard, small, suite="smoke", images=20, progress=False)
    result.save(folder)
    again = Result.load(folder)
    assert [next(iter(link)) for link in again.config["defence"]].count("noise") == 2
    first, second = (again.diagnostics[f"{name}/dim_gate_histogram"] for name in ("gated", "gated-2"))
    assert first.shape == second.shape and np.isfinite([first, second]).all()
    for name in ("gated", "gated-2"):
        assert any(flag.startswith(f"{name}: its penalty fell") for flag in again.flags)
    assert {"grumble: grumbles", "grumble-2: grumbles"} <= set(again.flags)


def test_promises_and_explanations_keep_both(told, small):
    network, guard, _, _ = told
    assert promises(network, guard, small)["not_counted"] == ["grumble", "grumble-2"]
    scene = look(network, guard, small, 50)
    assert [sight.link for sight in scene.sights] == ["gated", "gated-2"]
    assert scene.chain == "noise + noise-2 + shrink + shrink-2 + gated + grumble + gated-2 + grumble-2"


def test_a_copy_for_a_client_keeps_the_names(told):
    _, guard, _, _ = told
    assert list(copy.deepcopy(guard).named) == list(guard.named)
