"""The audit: wired to the released graph, worst case per image, nothing lost on disk."""

import numpy as np
import pytest
import torch

import attcem
from attcem.assess import Judge, audit
from attcem.attacks import Reconstruction
from attcem.attacks.checks import adequacy_flags
from attcem.defences import Noise, Undefended
from attcem.types import Result, Scores, Summary
from tests.probes import Blank


@pytest.fixture(scope="module")
def trained(small):
    torch.manual_seed(0)
    model = attcem.split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.125)
    attcem.fit(model, Undefended(), small, epochs=4, progress=False)
    return model


def test_blanking_the_latent_gives_chance_accuracy_and_the_mean_image(trained, small):
    clean = audit(trained, Undefended(), small, suite="smoke", images=100, progress=False)
    blank = audit(trained, Blank(), small, suite="smoke", images=100, progress=False)
    assert clean.accuracy > 0.35 and blank.accuracy < 0.2
    assert clean.worst.mse < 0.6 * clean.baselines["mean_image"].mse
    assert blank.worst.mse > 0.97 * blank.baselines["mean_image"].mse
    assert blank.worst.recon_acc < 0.25
    assert any("near chance" in flag for flag in blank.flags)


def test_the_result_survives_the_disk(trained, small, tmp_path):
    result = audit(trained, Noise(0.1), small, suite="smoke", images=30, progress=False)
    result.save(tmp_path)
    again = Result.load(tmp_path)
    assert again.to_json() == result.to_json()
    assert again.gallery.keys() == result.gallery.keys()
    assert all(np.array_equal(again.gallery[name], result.gallery[name]) for name in result.gallery)
    assert all(np.array_equal(again.per_image[name], result.per_image[name]) for name in result.per_image)
    assert result.per_image["decoder_small/mse"].shape == (30,)
    assert result.worst.mse == pytest.approx(result.per_image["worst/mse"].mean())
    assert result.cost["bytes"] == 8 * 7 * 7 * 4 and result.history == trained.record.history
    assert "decoder_small" in result.report(tmp_path / "page.html").read_text()


def test_a_missing_or_foreign_result_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="attcem audit"):
        Result.load(tmp_path)
    (tmp_path / "result.json").write_text('{"schema": "other"}')
    with pytest.raises(ValueError, match="has schema 'other'"):
        Result.load(tmp_path)
    (tmp_path / "result.json").write_text('{"schema"')
    with pytest.raises(ValueError, match="not JSON"):
        Result.load(tmp_path)


def test_the_worst_case_is_taken_per_image(trained, small):
    judge = Judge(trained, Undefended(), small.test[:2])
    truth = small.test[:2].pixels()
    judge.score("first", Reconstruction(torch.stack([truth[0], 1 - truth[1]])))
    judge.score("second", Reconstruction(torch.stack([1 - truth[0], truth[1]])))
    worst = judge.worst(["first", "second"])
    assert worst.mse == 0 and worst.psnr == 100 and worst.ssim == pytest.approx(1) and worst.reid_top1 == 1
    assert judge.summary("first").mse > 0.05


def test_recognition_of_a_perfect_copy_is_the_networks_accuracy(trained, small):
    judge = Judge(trained, Undefended(), small.test)
    judge.score("copy", Reconstruction(small.test.pixels()))
    assert judge.summary("copy").recon_acc == pytest.approx(attcem.evaluate(trained, Undefended(), small.test)[1])


def test_unknown_suites_and_options_are_named(trained, small):
    with pytest.raises(ValueError, match="did you mean 'quick'"):
        audit(trained, Undefended(), small, suite="quik")
    with pytest.raises(ValueError, match="did you mean 'images'"):
        audit(trained, Undefended(), small, imags=3)


def scores(mse: float) -> Scores:
    number = Summary(mse, mse, mse, 5)
    return Scores(mse=number, psnr=number, ssim=number, recon_acc=number, reid_top1=number)


@pytest.mark.parametrize(
    ("worst", "accuracy", "undefended", "warnings", "said"),
    [
        (0.01, 0.9, True, [], None),
        (0.05, 0.9, False, [], None),
        (0.07, 0.9, False, [], "they failed"),
        (0.05, 0.9, True, [], "too weak to judge by"),
        (0.01, 0.15, True, [], "near chance"),
        (0.01, 0.9, True, ["not done"], "decoder: not done"),
    ],
)
def test_flags(worst, accuracy, undefended, warnings, said):
    attack = Reconstruction(torch.zeros(1, 1, 28, 28), warnings=warnings)
    settings = {"accuracy": accuracy, "classes": 10, "undefended": undefended}
    flags = adequacy_flags({"decoder": attack}, worst=scores(worst), mean_image=scores(0.06), **settings)
    assert (len(flags) == 1 and said in flags[0]) if said else not flags


def test_a_summary_prints_and_computes_as_its_mean():
    summary = Summary.of(np.arange(101) / 100)
    assert summary == pytest.approx(0.5) and summary + 1 == pytest.approx(1.5) and f"{summary:.2f}" == "0.50"
    assert (summary.p05, summary.p95, summary.n) == pytest.approx((0.05, 0.95, 101))
