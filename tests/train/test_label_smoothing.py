"""Smoothed targets reach the task's gradient and nothing else; a run without them is what it was."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F

from attcem.config import Experiment, TrainConfig
from attcem.configfile import parse_experiment
from attcem.defences import Guard, Noise, Undefended
from attcem.models import build_split
from attcem.train import checkpoint, evaluate, fit, read_state
from attcem.train.gradients import one_pass
from tests.probes import Shrink


def test_the_loss_is_the_cross_entropy_with_softened_labels(network, small):
    x, y = small.private[:9].pixels(), small.private.y[:9]
    network.eval()
    report = one_pass(network, Guard(Shrink(lam=2)), x, y, lambda link: link.lam, label_smoothing=0.3)
    smoothed = [parameter.grad.clone() for parameter in network.parameters()]
    network.zero_grad()

    z = network.encoder(x)
    softened = 0.7 * F.one_hot(y, small.classes) + 0.3 / small.classes
    loss = -(softened * F.log_softmax(network.decoder(z), 1)).sum(1).mean()
    (loss + 2 * z.square().mean()).backward()
    torch.testing.assert_close(report.loss, loss.detach())
    torch.testing.assert_close(smoothed, [parameter.grad for parameter in network.parameters()])


def test_validation_is_measured_against_the_labels_themselves(network, small):
    row = fit(network, Undefended(), small, epochs=1, label_smoothing=0.9, progress=False).history[0]
    logits = network(small.validation.pixels())
    assert row["val_loss"] == pytest.approx(F.cross_entropy(logits, small.validation.y).item(), rel=1e-4)
    assert evaluate(network, Undefended(), small.validation)[0] == pytest.approx(row["val_loss"])
    assert row["loss"] > 1.2, "the targets were not smoothed: their own entropy is 1.9 nats"


def test_a_smoothed_run_resumes_to_the_same_weights_and_under_no_other_smoothing(network, small, tmp_path, monkeypatch):
    def trained(out, smoothing=0.2, **options):
        model = build_split(network.spec)
        model.load_state_dict(network.state_dict())
        fit(model, Noise(0.1), few, epochs=3, label_smoothing=smoothing, out=out, progress=False, **options)
        return model.state_dict()

    few = dataclasses.replace(small, private=small.private[:200], validation=small.validation[:50])
    whole = trained(tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "remove_dropped", lambda _, state: 1 / (not state.dropped))
        with pytest.raises(ZeroDivisionError):
            trained(tmp_path / "killed")
    assert read_state(tmp_path / "killed" / "checkpoint").config["label_smoothing"] == 0.2
    with pytest.raises(ValueError, match=r"label_smoothing was 0\.2, now None"):
        trained(tmp_path / "killed", smoothing=0.0, resume=True)
    torch.testing.assert_close(trained(tmp_path / "killed", resume=True), whole, rtol=0, atol=0)


def test_without_smoothing_nothing_is_recorded_so_that_earlier_runs_are_found_again():
    assert "label_smoothing" not in Experiment().to_dict()["train"]
    assert parse_experiment(["--train.label_smoothing", "0.1"]).to_dict()["train"]["label_smoothing"] == 0.1


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_what_is_no_share_is_refused(share):
    with pytest.raises(ValueError, match=r"label_smoothing must be a share .* try 0\.1"):
        TrainConfig(label_smoothing=share)
