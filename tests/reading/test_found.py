"""What the search for damage that hurts has found, each once."""

import json
import os

import pytest
import torch
from safetensors.torch import load, save

from attcem.assess.judge import read as read_evaluator
from attcem.configfile import UsageError, parse_experiment
from attcem.experiment import load_run
from attcem.listing import is_sweep
from attcem.report import render
from attcem.report.watch import how_far
from attcem.types import Result
from tests.reading.answers import optimiser, trust_tensors
from tests.reading.whole import PICTURES, make_run, planned


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path)
    return tmp_path


def change_state(run, **spec):
    path = run / "checkpoint" / "state.json"
    state = json.loads(path.read_text())
    path.write_text(json.dumps(state | {"spec": state["spec"] | spec}))


@pytest.mark.parametrize(
    "spec", [{"width": 300.0}, {"width": 1e308}, {"bottleneck": {"channels": 2**50, "stride": 1, "kernel": 1}}]
)
def test_no_memory_is_taken_for_a_network_that_the_weights_do_not_fit(run, spec):
    change_state(run, **spec)
    with pytest.raises(ValueError, match=r"does not fit its spec|width|no network can be built"):
        load_run(run, device="cpu")


@pytest.mark.parametrize("spec", [{"shape": [1, 40_000, 40_000]}, {"classes": 3}])
def test_a_network_for_other_data_is_refused(run, spec):
    change_state(run, **spec)
    with pytest.raises(ValueError, match="was trained on other data"):
        load_run(run, device="cpu")


def test_a_name_longer_than_any_file_has_is_named(run):
    path = run / "checkpoint" / "state.json"
    path.write_text(path.read_text().replace("epoch-0001.safetensors", "a" * 300))
    with pytest.raises(ValueError, match=r"a{300} cannot be read"):
        load_run(run, device="cpu")


def test_weights_of_a_type_that_torch_does_not_have_are_named(run):
    path = run / "checkpoint" / "epoch-0001.safetensors"
    odd = save(load(path.read_bytes()) | {"odd": torch.zeros(1, dtype=torch.float8_e5m2)})
    path.write_bytes(odd.replace(b"F8_E5M2", b"F8_E8M0"))
    trust_tensors(run)
    with pytest.raises(ValueError, match=r"epoch-0001\.safetensors holds no tensors"):
        load_run(run, device="cpu")


@pytest.mark.parametrize("change", [{"exp_avg": None}, {"step": torch.tensor(-1.0)}, {"exp_avg": torch.zeros(3, 0)}])
def test_an_optimiser_remembers_what_fits_its_parameters(run, change):
    path = run / "checkpoint" / "epoch-0001.safetensors"
    tensors = load(path.read_bytes()) | {f"optimiser.0.{name}": tensor for name, tensor in change.items()}
    path.write_bytes(save({name: tensor for name, tensor in tensors.items() if tensor is not None}))
    trust_tensors(run)
    with pytest.raises(ValueError, match="does not fit this optimiser"):
        optimiser(run)


def test_a_judge_cannot_be_more_often_right_than_always(run):
    path = run / "judge.safetensors"
    path.write_bytes(save(load(path.read_bytes()) | {"accuracy": torch.tensor(2.0)}))
    assert read_evaluator(path, PICTURES, 2) is None


@pytest.mark.parametrize("text", ["train: {epochs: null}", "audit: {suite: null}", "model: {width: null}"])
def test_a_setting_that_needs_a_value_cannot_be_null(tmp_path, text):
    (tmp_path / "one.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"one\.yaml: .* cannot be null"):
        parse_experiment([str(tmp_path / "one.yaml")])


def test_what_can_be_read_can_be_shown():
    run: Result = planned({"noise": {"sigma": 0.1}})
    client = {"client": 0, "images": 0, "classes": {"a": 5}, "accuracy": None, "worst": {}, "covered": 0.0}
    run.clients = [client | {"mean_image_mse": None}]
    run.history[0]["bound/shut_off"] = -1e308
    run.per_image = {}
    run.risk = {"percentiles": {"mse": {"px": 1.0, "p50": 0.004, "p01": 0.001, "": 2.0}}}
    assert "</html>" in render([run])


def test_how_far_a_run_is_fits_in_a_line(run):
    (run / "history.csv").write_text("epoch,val_accuracy\n1e308,-1e308\n")
    assert len(how_far(run)) < 100


def test_a_pipe_is_no_sweep(tmp_path):
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ValueError, match="not a plain file"):
        is_sweep(tmp_path / "pipe.yaml")
