"""What is kept of training: means over the steps that were looked at."""

import json

import numpy as np
import pytest
import torch

from attcem import Noise, audit, create_defence, fit
from attcem.train.diagnostics import EVERY, Diagnostics
from attcem.types import Result


def test_numbers_and_vectors_are_averaged_and_begin_anew_each_epoch():
    diagnostics = Diagnostics()
    diagnostics.take({"a": torch.tensor(1.0), "v": torch.tensor([0.0, 2.0])})
    diagnostics.take({"a": torch.tensor(3.0), "v": torch.tensor([1.0, 2.0]), "b": torch.tensor(5.0)})
    assert diagnostics.close() == ({"a": 2.0, "b": 5.0}, {"v": [0.5, 2.0]})
    assert diagnostics.close() == ({}, {})


def test_the_first_step_of_every_epoch_is_looked_at_and_few_others():
    assert [step for step in range(3 * EVERY) if Diagnostics.due(step)] == [0, EVERY, 2 * EVERY]


@pytest.fixture
def trained(network, small, tmp_path):
    guard = Noise(0.1) + create_defence("gated", form="gates", lam=0.5, warmup=1)
    state = fit(network, guard, small, epochs=2, out=tmp_path, progress=False)
    return network, guard, small, state, tmp_path


def test_a_run_keeps_what_its_defence_saw(trained):
    network, guard, small, state, folder = trained
    figures = {"intra_mse", "rate_nats", "attention_entropy", "dim_gate", "snr_gate", "class_gate", "task_gradient"}
    for row in state.history:
        assert {f"gated/{name}" for name in figures} <= row.keys()
        assert all(np.isfinite(value) for value in row.values())
    assert [row["penalty_weight"] for row in state.history] == [0.0, 0.5] == [r["gated/weight"] for r in state.history]
    assert state.history[0]["penalty"] == 0 < state.history[0]["gated/penalty"], "its value is told before it weighs"
    assert state.history[1]["penalty"] == pytest.approx(state.history[1]["gated/penalty"], rel=1e-5)
    header = (folder / "history.csv").read_text().splitlines()[0].split(",")
    assert "gated/gradient_cosine" in header
    result = audit(network, guard, small, suite="smoke", images=20, progress=False)
    histogram = result.diagnostics["gated/dim_gate_histogram"]
    assert histogram.shape == (2, 16) and np.allclose(histogram.sum(1), 1)
    result.save(folder)
    again = Result.load(folder)
    assert np.array_equal(again.diagnostics["gated/dim_gate_histogram"], histogram)
    assert "worst/mse" in again.per_image and not any(name.startswith("gated/") for name in again.per_image)


def test_the_result_says_how_far_the_penalty_falls_alone_and_flags_it(trained):
    network, guard, small, state, folder = trained
    result = audit(network, guard, small, suite="smoke", images=20, progress=False)
    result.save(folder, overwrite=True)
    assert json.loads((folder / "result.json").read_text())["surrogate_only"] == state.surrogate_only["gated"] > 0.5
    assert any("says nothing about what leaks" in flag for flag in result.flags)


def test_without_a_surrogate_there_is_nothing_to_say(network, small):
    fit(network, Noise(0.1), small, epochs=1, progress=False)
    result = audit(network, Noise(0.1), small, suite="smoke", images=20, progress=False)
    assert result.surrogate_only is None and not result.diagnostics


def test_a_slot_run_that_was_shut_off_says_so(network, small):
    guard = Noise(0.1) + create_defence("slot", form="mixture", warmup=0)
    state = fit(network, guard, small, epochs=2, progress=False)
    assert [row["slot/shut_off"] for row in state.history] == [1.0, 1.0]  # of every step: the first 100 are silent
    assert all(0 < row["slot/slot_entropy"] <= 1 for row in state.history)
    result = audit(network, guard, small, suite="smoke", images=20, progress=False)
    assert any("shut off in 100%" in flag for flag in result.flags)
