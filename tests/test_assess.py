"""The audit: wired to the released graph, worst case per image, nothing lost on disk."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
import torch
from torch import nn

import attcem
from attcem.assess import allowed, audit, record
from attcem.assess.judge import Judge
from attcem.assess.pieces import pieces, unordered, weigh
from attcem.assess.record import below_the_floor
from attcem.assess.share import Finished
from attcem.assess.suite import guess_at, stages
from attcem.attacks import ATTACKS, SUITES, Attack, Reconstruction, Suite
from attcem.attacks.adversarial import AdversarialDecoder
from attcem.attacks.decoder import Decoder
from attcem.attacks.optimise import Optimise
from attcem.attacks.probe_linear import LinearProbe
from attcem.config import GRANTS, AuditConfig
from attcem.defences import Dropout, Guard, Noise, TopK, Undefended
from attcem.metrics import METRICS, Evaluator
from attcem.threat import build_view
from attcem.types import Result, Summary, View, Workbook
from tests.compare.planted import bound, made, noise, quickly
from tests.conftest import shrink
from tests.probes import Blank, Nothing, Pixels, split_with


@pytest.fixture(scope="module")
def trained(small):
    torch.manual_seed(0)
    model = attcem.split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.125)
    attcem.fit(model, Undefended(), small, epochs=4, progress=False)
    return model


@pytest.fixture(scope="module")
def few(small):
    """The same with fewer pictures to learn an attack from."""
    return shrink(small, private=2, validation=2, public=160, test=50)


@pytest.fixture(scope="module")
def audited(trained, small):
    """An audit of sixty images that keeps twelve."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record, "KEPT", 12)
        return audit(trained, Noise(0.1), small, suite="smoke", images=60, progress=False)


def test_blanking_the_latent_gives_chance_accuracy_and_the_mean_image(audited, trained, small):
    blank = audit(trained, Blank(), small, suite="smoke", images=60, progress=False)
    assert audited.accuracy > 0.35 and blank.accuracy < 0.2
    assert audited.worst.mse < 0.6 * audited.baselines["mean_image"].mse
    assert blank.worst.mse > 0.97 * blank.baselines["mean_image"].mse
    assert blank.worst.recon_acc < 0.25
    assert any("near chance" in flag for flag in blank.flags)


def test_the_result_survives_the_disk(audited, trained, tmp_path):
    audited.save(tmp_path)
    again = Result.load(tmp_path)
    assert again.to_json() == audited.to_json()
    assert again.gallery.keys() == audited.gallery.keys()
    assert all(np.array_equal(again.gallery[name], audited.gallery[name]) for name in audited.gallery)
    assert all(np.array_equal(again.per_image[name], audited.per_image[name]) for name in audited.per_image)
    assert audited.per_image["decoder_small/mse"].shape == (60,)
    assert audited.worst.mse == pytest.approx(audited.per_image["worst/mse"].mean())
    assert audited.cost["bytes"] == 8 * 7 * 7 * 4 and audited.history == trained.record.history
    assert audited.strengths == {"noise": "sigma"}
    assert "decoder_small" in audited.report(tmp_path / "page.html").read_text()


def own_network(data, channels, **training):
    """A network of the user's own, cut behind its first activation, and trained for an epoch if settings are given."""
    module = nn.Sequential(nn.Conv2d(1, channels, 3, 4), nn.Sigmoid(), nn.Flatten(), nn.LazyLinear(data.classes))
    example = torch.rand(2, *data.shape)
    module(example)
    model = attcem.split(module, at="1", example=example)
    if training:
        attcem.fit(model, Undefended(), data, **training, progress=False)
    return model


def describe_audit(model, guard, data):
    return record.describe_experiment(model, Guard.of(guard), data, AuditConfig())


def test_a_result_made_in_python_says_which_network_of_ones_own_it_is_and_how_it_was_trained(small):
    narrow = describe_audit(own_network(small, 4, epochs=1, batch=16), Undefended(), small)
    assert narrow["train"]["epochs"] == 1 and narrow["train"]["batch"] == 16
    assert narrow["model"]["latent"] == [4, 7, 7] and narrow["model"]["parameters"] == {"device": 40, "cloud": 1970}
    again, wide = own_network(small, 4), own_network(small, 5)
    assert (
        describe_audit(again, Noise(0.1), small)["model"] == narrow["model"] == json.loads(json.dumps(narrow["model"]))
    )
    assert describe_audit(wide, Undefended(), small)["model"]["sha256"] != narrow["model"]["sha256"]
    assert "train" not in describe_audit(again, Undefended(), small), "nobody knows how it was trained"


def test_only_results_of_one_network_of_ones_own_are_compared(small):
    """Undefended and defended ones of the same network among them."""
    networks = [describe_audit(own_network(small, channels), Undefended(), small)["model"] for channels in (4, 4, 4, 5)]
    defences = {}, noise(1), bound(1), bound(2)
    none, first, second, other = (
        made(defence, 0.9 - number / 10, 0.02 + number / 100, model=network)
        for number, (defence, network) in enumerate(zip(defences, networks, strict=True))
    )
    spans = [line.spans for line in quickly([none, first, second]).rows]
    assert spans == ["0.8000–0.9000", "0.7000–0.9000"]
    with pytest.raises(ValueError, match=r"differ in model\.latent: \[4, 7, 7\] and \[5, 7, 7\]; .*model\.sha256"):
        quickly([none, first, other])


def test_pictures_are_kept_of_the_first_images_and_of_those_that_leak_most_least_and_in_the_middle(audited):
    order = np.argsort(audited.per_image["worst/mse"], kind="stable")
    assert audited.shown[:12] == list(range(12)) and len(audited.shown) == len(set(audited.shown))
    assert set(audited.shown) == {*range(12), *order[:3], *order[28:31], *order[-3:]}
    pictures = audited.gallery
    assert len(audited.labels) == len(pictures["original"]) == len(pictures["worst"]) == len(audited.shown)
    assert len(pictures["decoder_small"]) == len(pictures["mean_image"]) == 10
    kept = pictures["worst"].astype(float) - pictures["original"]
    expected = audited.per_image["worst/mse"][audited.shown]
    np.testing.assert_allclose(((kept / 255) ** 2).mean((1, 2, 3)), expected, atol=2e-4)


def test_a_missing_or_foreign_result_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="attcem audit"):
        Result.load(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": "other"}')
    with pytest.raises(ValueError, match="has schema 'other'"):
        Result.load(tmp_path)
    (tmp_path / "result.json").write_text('{"schema"')
    with pytest.raises(ValueError, match="is not JSON"):
        Result.load(tmp_path)


@pytest.fixture(scope="module")
def evaluator(small):
    return Evaluator.train(small.private, small.classes, epochs=8)


def test_the_worst_case_is_taken_per_image(evaluator, small):
    judge = Judge(small.test[:2], evaluator)
    truth = small.test[:2].pixels()
    judge.score("first", torch.stack([truth[0], 1 - truth[1]]))
    judge.score("second", torch.stack([1 - truth[0], truth[1]]))
    worst = judge.worst(["first", "second"])
    assert worst.mse == 0 and worst.psnr == 100 and worst.ssim == pytest.approx(1) and worst.reid_top1 == 1
    assert worst.more["feature_distance"] == 0
    assert judge.summary("first").mse > 0.05


def test_an_attack_on_some_images_counts_for_those_only(evaluator, small):
    judge = Judge(small.test[:20], evaluator)
    truth = small.test[:20].pixels()
    judge.score("all", torch.zeros_like(truth))
    judge.score("some", truth[:5])
    worst = judge.worst(["all", "some"])
    assert judge.summary("some").mse == 0 and judge.summary("some").mse.n == 5
    per_image = judge.per_image()["worst/mse"]
    assert (per_image[:5] == 0).all() and (per_image[5:] > 0).all() and worst.mse.n == 20


def test_a_mirrored_darkened_picture_is_seen_through(evaluator, small):
    judge = Judge(small.test[:10], evaluator)
    judge.score("mirrored", 0.2 + 0.5 * small.test[:10].pixels().flip(3))
    found = judge.summary("mirrored")
    assert found.mse > 0.02 and found.more["aligned_mse"] < 1e-4


def test_recognition_is_that_of_an_independent_evaluator(evaluator, small):
    judge = Judge(small.test, evaluator)
    judge.score("copy", small.test.pixels())
    judge.score("grey", torch.full_like(small.test.pixels(), 0.5))
    assert judge.summary("copy").recon_acc > judge.summary("grey").recon_acc + 0.2


def test_a_threat_model_without_queries_skips_what_needs_them_and_says_why(trained, small):
    with pytest.raises(ValueError, match="no attack of this suite"):
        audit(trained, Undefended(), small, suite="smoke", threat="black_box", progress=False)
    suite = {"decoder": ATTACKS["decoder_small"], "white": ATTACKS["optimise_adam"]}
    able, skipped = allowed(suite, GRANTS["query"])
    assert list(able) == ["decoder"] and skipped == {"white": "it needs gradients and weights"}


def test_stages_tell_what_the_bottleneck_and_the_release_hide(trained, few):
    brief = Decoder(8, 1, cycle=8, doublings=0, batch=16)
    found = guess_at(stages(trained, Guard(Blank())), brief, few, few.test, seed=0)
    assert list(found) == ["before_bottleneck", "clean", "released"]
    before, clean, released = (METRICS["mse"](guess, few.test.pixels()).mean() for guess in found.values())
    assert before < clean < 0.8 * released
    narrow = attcem.split("vgg11_bn", data=few, cut=4, width=0.125).eval()
    assert list(stages(narrow, Guard())) == ["clean", "released"]


def asked(encoder, guard, data):
    """Piece → MSE of a brief decoder on it, over that of the mean image."""
    devices = pieces(split_with(encoder, data.shape), Guard.of(guard), data.public)
    found = guess_at(devices, Decoder(8, 1, cycle=20, doublings=0, batch=16), data, data.test, seed=0)
    truth, mean = data.test.pixels(), data.public.mean()
    return {
        name: ((guess - truth).square().mean() / (mean - truth).square().mean()).item() for name, guess in found.items()
    }


def test_pieces_tell_of_pixels_what_they_hold_and_nothing_of_a_constant(few):
    told = asked(Pixels(), TopK(0.3), few)
    assert told["positions"] < 0.65 and told["positions"] < told["values"] < 0.97
    assert all(ratio > 0.98 for ratio in asked(Nothing(), Dropout(0.5), few).values())
    assert asked(Pixels(), Noise(0.1), few) == {}


def test_attention_and_tokens_in_unknown_order_are_pieces_of_a_crossing_that_attends(few):
    model = attcem.split("vgg11_bn", data=few, cut=4, width=0.125, crossing={"attention": {"tokens": 3, "width": 8}})
    for weights in model.encoder.parameters():
        weights.data.normal_(std=0.3)  # as they are made, all tokens are alike
    devices = pieces(model.eval(), Guard(), few.public)
    x = few.test[:4].pixels()
    with torch.no_grad():
        sent = {name: device.release(device.encode(x)) for name, device in devices.items()}
        tokens = model.encoder(x)
    assert list(sent) == ["unordered_tokens", "attention"]
    torch.testing.assert_close(sent["attention"].sum((2, 3)), torch.ones(4, 3))
    assert torch.equal(sent["unordered_tokens"], unordered(tokens.flip(1)))
    assert torch.equal(sent["unordered_tokens"].sort(1).values, tokens.sort(1).values)


def test_a_piece_is_flagged_where_it_surely_tells_most_of_what_the_whole_tells(small):
    truth = small.test[:80].pixels()
    free = small.public.mean().expand_as(truth)
    even = torch.arange(80)[:, None, None, None] % 2 == 0
    these, others = torch.where(even, truth, free), torch.where(even, free, truth)
    unseeing = SimpleNamespace(
        recognised=lambda guess, y: y.float(), distance=lambda guess, truth: guess.mean((1, 2, 3))
    )

    def flags(piece, whole):
        judge = Judge(small.test[:80], unseeing)
        judge.score("mean_image", free)
        return weigh(judge, {"positions": piece}, whole)[1]

    half, third = (free + share * (truth - free) for share in (1 / 2, 1 / 3))
    (flag,) = flags(half, half)
    assert "positions alone" in flag and "MSE" in flag and "SSIM" in flag
    assert flags(half, third) and not flags(third, half)
    assert not flags(free, free), "where nothing leaks, no piece leaks as much"
    assert flags(these, these) and not flags(these, others), "as good on average, but not surely"


def test_an_audit_with_a_yardstick_keeps_what_pieces_and_probes_tell_of_every_picture(
    trained, small, monkeypatch, tmp_path
):
    brief = Decoder(8, 1, cycle=8, doublings=0, batch=16)
    suite = replace(SUITES["smoke"], name="brief", yardstick=brief, probes={"linear": LinearProbe(1)})
    monkeypatch.setitem(SUITES, "brief", suite)
    found = audit(trained, TopK(0.1), small, suite="brief", images=30, progress=False)
    assert list(found.pieces) == ["positions", "values", "whole"]
    assert found.pieces["whole"].mse == pytest.approx(found.curves["stages"]["released"])
    assert found.pieces["values"].ssim == pytest.approx(found.per_image["piece values/ssim"].mean())
    assert found.probes["linear"]["accuracy"]["mean"] == pytest.approx(found.per_image["probe linear/accuracy"].mean())
    found.save(tmp_path)
    assert Result.load(tmp_path).pieces == found.pieces
    assert "What its pieces tell" in found.report(tmp_path / "page.html").read_text()


CONSTANT = 1


class Counted(Attack):
    """Guesses grey, counts how often it was asked, and fails when told to."""

    calls: ClassVar[list[str]] = []

    def __init__(self, name, fails=False):
        self.name, self.fails = name, fails

    def brief(self):
        return self

    def __call__(self, view, *, seed=0, progress=False):
        if self.fails:
            raise KeyboardInterrupt
        self.calls.append(self.name)
        return Reconstruction(torch.full((len(view.targets), *view.public.shape), 0.5), [1.0, 0.5], ["doubt"])


def test_an_interrupted_audit_goes_on_after_its_finished_attacks(trained, small, tmp_path, monkeypatch):
    def go(fails):
        monkeypatch.setitem(SUITES, "mine", Suite("mine", 1, {"a": Counted("a"), "b": Counted("b", fails)}, seen=128))
        return audit(trained, Noise(0.1), small, suite="mine", images=20, keep=tmp_path, progress=False)

    Counted.calls.clear()
    with pytest.raises(KeyboardInterrupt):
        go(fails=True)
    resumed = go(fails=False)
    assert Counted.calls == ["a", "b"]
    for kept in tmp_path.iterdir():
        kept.write_bytes(kept.read_bytes()[:100])
    again = go(fails=False)
    assert Counted.calls == ["a", "b", "a", "b"], "a file that is not whole is not taken for one"
    assert again.to_json() == resumed.to_json() and resumed.flags[0] == "a, b: doubt"
    audit(trained, Noise(0.1), small, suite="mine", images=20, seed=1, keep=tmp_path, progress=False)
    assert Counted.calls[4:] == ["a", "b"], "another seed is another question"
    assert again.suite == SUITES["mine"].version
    monkeypatch.setattr(sys.modules[__name__], "CONSTANT", 2)
    assert go(fails=False).suite != again.suite
    assert Counted.calls[6:] == ["a", "b"], "what was found with another constant of the module is not taken up"


@pytest.mark.parametrize("gain", [None, 0.25])
def test_a_finished_attack_comes_back_as_it_was_kept(gain, small, tmp_path):
    kept = Finished(tmp_path, View(small.public, None, torch.zeros(2, 3)), seed=0)
    state = {"lr": torch.tensor(0.1, dtype=torch.float64), "weights": torch.randn(3, 2)}
    found = Reconstruction(torch.full((2, 1, 4, 4), 0.3), [0.5, 0.25], ["cut short"], gain, state)
    kept.keep("a", Counted("a"), found)
    again = kept.find("a", Counted("a"))
    assert torch.equal(again.images, found.images)
    assert (again.curve, again.flags, again.gain) == (found.curve, found.flags, gain)
    assert again.state.keys() == state.keys() and all(torch.equal(again.state[name], state[name]) for name in state)


START = Decoder(8, 1, cycle=4, doublings=1, batch=16)
BUILT = {
    "deeper": replace(START, blocks=2, start=START),
    "critic": AdversarialDecoder(start=START, steps=4, batch=16),
    "pixels": Optimise(images=4, steps=5, tuning=4, start=START),
}


@pytest.mark.parametrize("name", BUILT)
def test_what_builds_on_a_finished_decoder_does_not_train_it_again(name, network, few, tmp_path, monkeypatch):
    view, _ = build_view(network, Noise(0.1), few, images=8, threat="white_box")
    kept = Finished(tmp_path, view, seed=1)
    kept.keep("start", START, START(view, seed=1))
    expected = BUILT[name](view, seed=1)
    again = replace(view, workbook=Workbook())
    START.recall(again, kept.find("start", START), seed=1)
    learn = Decoder.train
    monkeypatch.setattr(
        Decoder, "train", lambda self, *rest: pytest.fail("again") if self == START else learn(self, *rest)
    )
    found = BUILT[name](again, seed=1)
    assert torch.equal(found.images, expected.images)
    assert (found.curve, found.flags, found.gain) == (expected.curve, expected.flags, expected.gain)


def test_unknown_suites_and_options_are_named(trained, small):
    with pytest.raises(ValueError, match="did you mean 'quick'"):
        audit(trained, Undefended(), small, suite="quik")
    with pytest.raises(ValueError, match="did you mean 'images'"):
        audit(trained, Undefended(), small, imags=3)


def test_an_attack_below_the_floors_estimate_is_said(evaluator, small):
    judge = Judge(small.test[:5], evaluator)
    judge.score("close", small.test[:5].pixels() * 0.99)
    worst = judge.worst(["close"])
    assert below_the_floor(worst, {"rate": None}) == [] == below_the_floor(worst, {"mse_floor_estimate": 1e-9})
    assert "do not quote it" in below_the_floor(worst, {"mse_floor_estimate": 0.1})[0]


def test_a_summary_prints_and_computes_as_its_mean():
    summary = Summary.of(np.arange(101) / 100)
    assert summary == pytest.approx(0.5) and summary + 1 == pytest.approx(1.5) and f"{summary:.2f}" == "0.50"
    assert (summary.p05, summary.p95, summary.n) == pytest.approx((0.05, 0.95, 101))


def test_a_result_that_calls_a_probe_by_its_older_name_is_read(audited, tmp_path):
    told = {"top1": {"mean": 0.5, "p05": 0.0, "p95": 1.0, "n": 60, "chance": 0.02}}
    path = replace(audited, probes={"reidentify": told}).save(tmp_path)
    assert Result.read(path).probes == {"same_picture": told}
