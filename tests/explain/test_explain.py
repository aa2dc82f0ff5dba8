"""What a run's defence looks at, drawn from its validation images."""

import io
import json
import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import yaml
from PIL import Image

import attcem.experiment
from attcem.cli import main
from attcem.config import Experiment, ModelConfig
from attcem.data import Data
from attcem.defences import DEFENCES, Surrogate, build_defence
from attcem.experiment import load_run, make_model
from attcem.explain import explain
from attcem.explain.look import look
from attcem.figures import style
from attcem.train.checkpoint import State, save_state
from attcem.train.diagnostics import Diagnostics
from attcem.types import Batch, Explanation

NOISE = {"noise": {"sigma": 0.2}}
SURROGATES = [name for name, kind in DEFENCES.items() if issubclass(kind, Surrogate)]
CHAINS = {name: NOISE | {name: {"warmup": 0}} for name in SURROGATES} | {
    "none": {},
    "noise": NOISE,
    "gates": NOISE | {"gated": {"form": "gates", "tokens": "spatial", "warmup": 0}},
    "mixture": NOISE | {"slot": {"form": "mixture", "slots": 3, "warmup": 0}},
    "bound by slots": NOISE | {"bound": {"assign": "slot", "tokens": "spatial", "slots": 12}},
    "bound by gates": NOISE | {"bound": {"assign": "gated", "slots": 3}},
}
EXPECTED = {
    "gated": ["attention-gated", "latent-pca"],
    "slot": ["usage-slot", "slots-slot", "latent-pca"],
    "bound": ["latent-pca"],
    "hybrid": ["attention-hybrid", "usage-hybrid", "slots-hybrid", "latent-pca"],
    "gmm": ["usage-gmm", "slots-gmm", "latent-pca"],
    "none": ["latent-pca"],
    "noise": ["latent-pca"],
    "gates": ["attention-gated", "gates-gated", "latent-pca"],
    "mixture": ["usage-slot", "slots-slot", "gates-slot", "latent-pca"],
    "bound by slots": ["usage-bound", "slots-bound", "latent-pca"],
    "bound by gates": ["usage-bound", "slots-bound", "latent-pca"],
}


class Sealed(Data):
    """Data of which only the validation images can be looked at."""

    def __getattribute__(self, name):
        assert name not in ("private", "public", "test"), f"{name} images were touched"
        return super().__getattribute__(name)


@pytest.fixture(scope="module")
def sealed(fashion):
    """Some images of every class."""
    some = torch.randperm(len(fashion.validation), generator=torch.Generator().manual_seed(1))[:200]
    return Sealed(**vars(fashion) | {"validation": fashion.validation[some]})


def written_run(folder, chain, small):
    """A run as training leaves it, but for the training: two epochs in the log, clusters fitted, weights at random."""
    torch.manual_seed(0)
    experiment = Experiment(model=ModelConfig(cut=4, bottleneck=4, width=0.1), defence=chain)
    model, guard = make_model(experiment, small), build_defence(chain)
    guard.setup(latent=model.latent_shape, classes=model.classes, sigma=guard.sigma)
    images = small.private[:200]
    batch = Batch(images.pixels(), images.y, model.encoder(images.pixels()).detach())
    log = Diagnostics()
    for link, defence in guard.named.items():
        watched = replace(batch, watched=True)
        defence.penalty(watched)
        log.take({f"{link}/{name}": value for name, value in watched.readings.items()})
    guard.observe(batch)
    state = State(config={}, spec=model.spec, seed=0, epoch=2, diagnostics=[log.close()[1]] * 2)
    parts = {"model": model, "guard": guard}
    tensors = {f"{part}.{name}": t for part in parts for name, t in parts[part].state_dict().items()}
    save_state(folder / "checkpoint", state, tensors, best=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(experiment.to_dict(), sort_keys=False))
    return folder


@pytest.fixture(scope="module")
def runs(small, tmp_path_factory):
    """The folder of each chain's run, written when it is first asked for."""
    return cache(lambda name: written_run(tmp_path_factory.mktemp("run"), CHAINS[name], small))


@pytest.fixture(autouse=True)
def only_validation(monkeypatch, sealed):
    monkeypatch.setattr(attcem.experiment, "load", lambda experiment: sealed)


DRAWN_AS_OTHERS = ["noise", "slot", "gated", "bound by gates"]
"""What they draw, another chain draws, too."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in DRAWN_AS_OTHERS)) for name in CHAINS]
)
def test_every_defence_gets_pictures_with_words(name, runs):
    folder = runs(name)
    found = explain(folder)
    assert [e.file.partition("-")[2].removesuffix(".png") for e in found] == EXPECTED[name]
    entries = json.loads((folder / "explain" / "entries.json").read_text())
    assert [set(entry) for entry in entries] == [{"title", "caption", "file"}] * len(found)
    assert {path.name for path in (folder / "explain").iterdir()} == {e.file for e in found} | {"entries.json"}
    assert Explanation.read(folder / "explain") == found
    for e in found:
        picture = Image.open(io.BytesIO(e.png))
        assert picture.format == "PNG" and 400 < picture.width < 2400 and 200 < picture.height < 3000
        assert np.asarray(picture.convert("RGB")).std(axis=(0, 1)).min() > 5
        assert round(picture.info["dpi"][0]) == 192
        assert e.title and e.caption.endswith(".") and any(letter.isdigit() for letter in e.caption)
        assert "nan" not in e.caption and "  " not in e.caption


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none", "looks at no images"),
        ("noise", "looks at no images"),
        ("bound", "no attention to draw of bound"),
        ("gated", "σ=0.2"),
    ],
)
def test_the_latent_says_what_else_there_is_to_see(name, said, runs):
    assert said in explain(runs(name))[-1].caption


def seen_by_hand(folder, sealed):
    model, guard, _ = load_run(folder)
    images = sealed.validation
    with torch.no_grad():
        batch = Batch(images.pixels(), images.y, model.encoder(images.pixels()))
        link = next(link for link in guard.links if isinstance(link, Surrogate))
        return link.losses(link.part(batch))[1]


def test_the_images_shown_are_those_that_weigh_most_and_least(runs, sealed, monkeypatch):
    weight = seen_by_hand(runs("gated"), sealed).weight[:, 0].numpy()
    figures, encoded = [], style.encoded
    monkeypatch.setattr(style, "encoded", lambda figure, form: figures.append(figure) or encoded(figure, form))
    explain(runs("gated"))
    (axes, *_), said = figures[0].axes, [text.get_text() for text in figures[0].axes[0].texts]
    shown = [np.asarray(image.get_array()) for image in axes.images if image.get_array().ndim == 3]
    y, expected, shares = sealed.validation.y.numpy(), [], []
    for c in range(sealed.classes):
        order = sorted(np.flatnonzero(y == c), key=lambda i: -weight[i])
        for i in [*order[:4], *order[-4:]]:
            expected.append(sealed.validation.x[i].expand(-1, -1, 3).numpy())
            shares.append(weight[i] * len(order))
    np.testing.assert_array_equal(np.stack(shown), np.stack(expected))
    written = [float(text.strip("<×")) for text in said if re.fullmatch(r"<?×[\d.]+", text)]
    np.testing.assert_allclose(written, shares, atol=0.01, rtol=0.06)


def test_weights_are_over_an_equal_share(runs, sealed):
    model, guard, data = load_run(runs("gates"))
    scene = look(model, guard, data, 1000)
    (sight,) = scene.sights
    assert scene.grid(sight.weight.shape[1]) == model.latent_shape[1:]
    for c in range(sealed.classes):
        assert sight.weight[scene.y[sight.index] == c].mean() == pytest.approx(1, abs=1e-5)
    assert scene.over_epochs("gated/dim_gate_histogram").shape == (2, 16)


def test_a_hybrid_shows_slots_of_the_riskiest_classes_only(runs):
    model, guard, data = load_run(runs("hybrid"))
    scene = look(model, guard, data, 1000)
    screen, refined = scene.sights
    assert len(screen.index) == len(scene.y)
    assert len(np.unique(scene.y[refined.index])) == 3
    assert len(refined.index) == len(refined.resp) == np.isin(scene.y, np.unique(scene.y[refined.index])).sum()


def test_classes_with_a_single_image_are_left_out_and_few_images_suffice(runs):
    model, guard, data = load_run(runs("gated"))
    scene = look(model, guard, data, 15)
    counts = np.bincount(scene.y, minlength=10)
    assert sorted(np.unique(scene.y[scene.sights[0].index])) == sorted(np.flatnonzero(counts >= 2))
    for images in (2, 3, 15):
        assert explain(runs("mixture"), images=images)[-1].file.endswith("latent-pca.png")
    with pytest.raises(ValueError, match="--images 1000"):
        explain(runs("none"), images=1)


def test_a_second_call_overwrites_and_leaves_nothing_behind(runs):
    pytest.importorskip("sklearn")
    folder = runs("noise")
    assert explain(folder, images=40, tsne=True)[-1].file == "2-latent-tsne.png"
    before = (folder / "explain" / "1-latent-pca.png").read_bytes()
    explain(folder)
    assert {path.name for path in (folder / "explain").iterdir()} == {"entries.json", "1-latent-pca.png"}
    assert (folder / "explain" / "1-latent-pca.png").read_bytes() != before


def test_without_scikit_learn_the_option_says_what_to_install(runs, monkeypatch):
    monkeypatch.setattr("attcem.explain.latent.find_spec", lambda name: None)
    with pytest.raises(ValueError, match="pip install scikit-learn"):
        explain(runs("noise"), tsne=True)


def test_without_matplotlib_the_command_says_what_to_install(runs, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["explain", str(runs("noise"))]) == 1
    assert "pip install 'attcem[figures]'" in capsys.readouterr().err


def test_a_diverged_run_says_so(runs):
    model, guard, data = load_run(runs("none"))
    with torch.no_grad():
        next(model.encoder.parameters()).fill_(torch.nan)
    with pytest.raises(ValueError, match="200 of 200 latents are not finite"):
        look(model, guard, data, 1000)
