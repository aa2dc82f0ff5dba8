"""Nothing stays behind: with the network elsewhere, everything that it meets is elsewhere, too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import attcem
from attcem.assess.judge import evaluator_for
from attcem.assess.pieces import pieces
from attcem.assess.record import promises
from attcem.assess.share import Finished
from attcem.assess.suite import guess_at, stages
from attcem.attacks import ATTACKS, BASELINES, PROBES, Attack, Reconstruction, regression
from attcem.config import AuditConfig, ClientsConfig, DataConfig, Experiment, ModelConfig, TrainConfig
from attcem.data import Data
from attcem.defences import DEFENCES, Defence, Noise, Undefended, create_defence
from attcem.explain import explain
from attcem.models import Split, split
from attcem.threat import build_view
from attcem.train import fit, fit_clients, honesty
from attcem.train.honesty import surrogate_only
from attcem.types import Images, People, View, Workbook
from tests.attacks.asking import coarse
from tests.attacks.conftest import at_most
from tests.conftest import shrink
from tests.elsewhere.stand_in import ELSEWHERE, NAME, elsewhere

CHOICES = {name: (name, {}) for name in DEFENCES} | {
    "gmm": ("gmm", {"warmup": 1}),
    "gated": ("gated", {"warmup": 0}),
    "slot": ("slot", {"warmup": 0, "threshold": "quantile"}),
    "hybrid": ("hybrid", {"warmup": 0, "deep": "slot"}),
    "arl": ("arl", {"steps": 1, "channels": 8, "blocks": 1}),
    "adversarial_noise": ("adversarial_noise", {"steps": 1, "channels": 8, "blocks": 1}),
    "bound by slots": ("bound", {"assign": "slot", "cov": "channel", "memory": 0.9, "warmup": 0}),
    "bound by gates": ("bound", {"assign": "gated", "cov": "gram", "warmup": 0}),
    "local_dp by Laplace": ("local_dp", {"mechanism": "laplace"}),
}
"""Every defence, and choices that compute something else; penalties begin within the few steps that they are given."""

FEW = {"steps": 2, "cycle": 2, "images": 2, "tuning": 2, "batch": 8, "channels": 8, "blocks": 1, "doublings": 0}
"""To how much the efforts of an attack are cut: as little as makes it do everything once."""


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(honesty, "surrogate_only", partial(surrogate_only, steps=2))
    with elsewhere():
        yield


@pytest.fixture(scope="module")
def few(fashion: Data) -> Data:
    return shrink(fashion, private=64, validation=16, public=80, test=24)


def tiny(data: Data, cut: int = 2) -> Split:
    return split("vgg11_bn", data=data, cut=cut, bottleneck=4, width=0.05)


def trained(guard: Defence, data: Data, out: Path | None = None, **options) -> Split:
    model = tiny(data, cut=4)
    fit(model, guard, data, out=out, progress=False, **{"epochs": 1, "batch": 64, "device": NAME} | options)
    return model


def view_of(data: Data, guard: Defence | None = None) -> tuple[View, Images]:
    view, truth = build_view(tiny(data).to(ELSEWHERE), guard or Noise(0.1), data, images=6, seed=0, threat="white_box")
    assert view.targets.device == ELSEWHERE
    return view, truth


@pytest.mark.parametrize("choice", CHOICES)
def test_every_defence_trains_and_releases(choice, few, tmp_path):
    name, options = CHOICES[choice]
    if name == "transfer":
        trained(Undefended(), few, tmp_path / "source")
        options = {"start_from": str(tmp_path / "source")}
    guard = Noise(0.1) + create_defence(name, **options)
    model = trained(guard, few, tmp_path / "run", epochs=2)
    assert guard.release(model.encoder(few.test.pixels().to(ELSEWHERE))).device == ELSEWHERE


@pytest.mark.parametrize("name", {type(attack): name for name, attack in reversed(ATTACKS.items())}.values())
def test_every_kind_of_attack_works_where_the_latents_lie(name, few):
    view, _ = view_of(few)
    found = at_most(ATTACKS[name].brief(), **FEW)(view)
    assert found.images.device == ELSEWHERE


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_works_where_the_latents_lie(name, few, monkeypatch):
    monkeypatch.setattr(regression, "ROWS", 64)
    view, truth = view_of(few)
    probe = at_most(PROBES[name], **FEW)
    answers = probe(replace(view, gallery=truth, people=People.of(few.private, few.classes, coarse)))
    assert all(len(scores) == len(truth) for scores in probe.score(answers, truth, truth, few.public).values())


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_works_where_the_latents_lie(name, few):
    view, truth = view_of(few)
    assert BASELINES[name](view, truth.y).shape == truth.pixels().shape


def test_an_attack_goes_on_from_what_was_kept(few, tmp_path):
    view, _ = view_of(few)
    first, second = (at_most(ATTACKS[name], **FEW) for name in ("decoder_medium", "decoder_res8"))
    kept = Finished(tmp_path, view, 0)
    kept.keep("medium", first, first(view))
    found = kept.find("medium", first)
    again = replace(view, workbook=Workbook())
    first.recall(again, found)
    assert replace(second, start=first)(again).images.device == ELSEWHERE


def test_a_run_is_trained_audited_and_explained_elsewhere_and_then_opened_here(few, tmp_path):
    arrays = {"x_train": few.private.x, "y_train": few.private.y, "x_test": few.test.x, "y_test": few.test.y}
    np.savez(tmp_path / "tiny.npz", **{name: tensor.numpy().astype(np.uint8) for name, tensor in arrays.items()})
    result, folder = attcem.run(
        Experiment(
            data=DataConfig(name=f"npz:{tmp_path / 'tiny.npz'}"),
            model=ModelConfig(cut=4, bottleneck=4, width=0.05),
            defence={"noise": {"sigma": 0.1}, "gated": {"warmup": 0}},
            train=TrainConfig(epochs=1, batch=32, device=NAME),
            audit=AuditConfig(suite="smoke", images=6),
        ),
        tmp_path / "run",
        progress=False,
    )
    assert result.per_image["worst/mse"].shape == (6,)
    assert [found.file for found in explain(folder, device=NAME)]
    there, here = (attcem.load_run(folder, device=device) for device in (NAME, "cpu"))
    x = here[2].test.pixels()
    torch.testing.assert_close(there[0].encoder(x.to(ELSEWHERE)).cpu(), here[0].encoder(x))


def test_bounds_and_stages_are_found_for_a_device_elsewhere(few):
    guard, model = attcem.Noise(0.1) + attcem.create_defence("topk"), tiny(few).to(ELSEWHERE)
    assert promises(model, guard, few)["rate_nats"] > 0
    devices = stages(model, guard) | pieces(model, guard, few.public)
    found = guess_at(devices, at_most(ATTACKS["decoder_small"], **FEW), few, few.test, seed=0)
    assert set(found) == {"before_bottleneck", "clean", "released", "positions", "values"}


def test_the_evaluator_is_trained_where_the_audit_is_and_read_back_there(few):
    found = evaluator_for(few, 300, False, ELSEWHERE)
    assert found.device == ELSEWHERE and evaluator_for(few, 300, False).device.type == "cpu"
    pictures = few.test.pixels()
    assert found.recognised(pictures, few.test.y).is_cpu and found.distance(pictures, pictures).is_cpu


def test_clients_train_together(few):
    guard = Noise(0.1) + create_defence("gmm", warmup=1)
    model = tiny(few)
    fit_clients(model, guard, few, ClientsConfig(count=2), epochs=2, batch=32, device=NAME, progress=False)
    assert {parameter.device for parameter in model.parameters()} == {ELSEWHERE}


class Forgetful(Defence):
    """A planted fault: what it adds is no buffer, and so stays where it was made."""

    def setup(self, *, latent, classes, sigma):
        self.shift = torch.ones(latent)

    def release(self, z):
        return z + self.shift


class Homesick(Attack):
    """A planted fault: the public images are not brought to the latents."""

    def __call__(self, view, *, seed=0, progress=False):
        brightness = view.targets.mean((1, 2, 3), keepdim=True)
        return Reconstruction(view.public.pixels().mean(0) * brightness)

    def brief(self):
        return self


def test_a_defence_that_leaves_a_tensor_behind_is_caught(few):
    with pytest.raises(RuntimeError, match="expected all tensors in one place"):
        trained(Forgetful(), few)


def test_an_attack_that_forgets_to_move_is_caught(few):
    view, _ = view_of(few)
    with pytest.raises(RuntimeError, match="expected all tensors in one place"):
        Homesick()(view)


def test_training_is_resumed_in_another_place(few, tmp_path):
    class Stops(Noise):
        left = 2

        def observe(self, batch):
            Stops.left -= 1
            if not Stops.left:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(Stops(0.1), few, tmp_path, epochs=2, device="cpu")
    model = trained(Stops(0.1), few, tmp_path, epochs=2, resume=True)
    assert len(model.record.history) == 2 and next(model.parameters()).device == ELSEWHERE
