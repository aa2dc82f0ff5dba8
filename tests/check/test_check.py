"""The gate: thresholds hold with confidence over images and seeds, and what is not known fails."""

import dataclasses
import json
import math
import shutil
from xml.etree import ElementTree

import numpy as np
import pytest
from scipy.stats import beta, binom

from attcem.check import Rules, check, junit, to_json
from attcem.check.confidence import mean_bound, ratio_bound, share_bound
from attcem.cli import main
from tests.report.made import make_result

IMAGES = 400


def audited(seed=0, ssim=0.3, ratio=0.6, rank1=0.05, accuracy=0.8, flags=(), suite="standard-4+09af3a92"):
    """A result whose scores scatter around what is asked for, the same images under every seed."""
    run = make_result(accuracy=accuracy, seed=seed, flags=flags, pictures=0, data={"name": "fashion"})
    rng = np.random.default_rng(seed)
    free = 0.08 * np.random.default_rng(9).uniform(0.5, 1.5, IMAGES)
    hits = np.arange(IMAGES) < round(rank1 * IMAGES)
    run.per_image = {
        "worst/ssim": ssim + 0.1 * rng.normal(size=IMAGES),
        "worst/mse": ratio * free * rng.uniform(0.8, 1.2, IMAGES),
        "worst/reid_top1": hits.astype(np.float32),
        "worst/recon_acc": hits.astype(np.float32),
        "mean_image/mse": free,
    }
    run.suite = suite
    return run


def saved(folder, **facts):
    audited(**facts).save(folder)
    return folder


def outcomes(verdict):
    return {outcome.rule: outcome for outcome in verdict.outcomes}


def test_a_threshold_between_the_value_and_its_bound_fails(tmp_path):
    saved(tmp_path / "run")
    values = audited().per_image["worst/ssim"]
    middle = (values.mean() + mean_bound(values, 1)) / 2
    for allowed, passes in ((middle, False), (mean_bound(values, 1) + 1e-6, True)):
        (verdict,) = check([tmp_path / "run"], Rules(max_ssim=allowed))
        assert verdict.passed is passes and outcomes(verdict)["ssim"].value == pytest.approx(values.mean())


@pytest.mark.parametrize(
    "rule, good, bad",
    [
        ("max_ssim", 0.35, 0.25),
        ("min_mse", 0.04, 0.06),
        ("min_mse_ratio", 0.5, 0.7),
        ("max_rank1", 0.1, 0.05),
        ("max_recon_acc", 0.1, 0.05),
        ("min_accuracy", 0.7, 0.85),
    ],
)
def test_every_rule_passes_and_fails(tmp_path, rule, good, bad):
    saved(tmp_path / "run")
    for threshold, passes in ((good, True), (bad, False)):
        (verdict,) = check([tmp_path / "run"], Rules(**{rule: threshold}))
        assert verdict.passed is passes
        assert verdict.lines()[-1].startswith("PASS" if passes else "FAIL")


def test_seeds_that_scatter_widen_the_bound_and_are_not_more_images(tmp_path):
    folders = [saved(tmp_path / f"run{seed}", seed=seed, ssim=ssim) for seed, ssim in enumerate((0.2, 0.3, 0.4))]
    (alone,) = check(folders[1:2], Rules(max_ssim=1.0))
    (together,) = check(folders, Rules(max_ssim=1.0))
    means = np.array(
        [audited(seed=seed, ssim=s).per_image["worst/ssim"].mean() for seed, s in enumerate((0.2, 0.3, 0.4))]
    )
    assert outcomes(together)["ssim"].bound == pytest.approx(mean_bound(means, 1))
    assert outcomes(together)["ssim"].bound > outcomes(alone)["ssim"].bound + 0.05
    pooled = np.concatenate(
        [audited(seed=seed, ssim=s).per_image["worst/ssim"] for seed, s in enumerate((0.2, 0.3, 0.4))]
    )
    assert outcomes(together)["ssim"].bound > mean_bound(pooled, 1) + 0.05


def test_seeds_that_agree_leave_the_bound_of_the_worst_run(tmp_path):
    folders = [saved(tmp_path / f"run{seed}", seed=seed) for seed in range(3)]
    (together,) = check(folders, Rules(max_ssim=1.0))
    worst = max(outcomes(check([folder], Rules(max_ssim=1.0))[0])["ssim"].bound for folder in folders)
    assert outcomes(together)["ssim"].bound >= worst


def test_one_run_twice_is_not_two_seeds(tmp_path):
    saved(tmp_path / "a"), saved(tmp_path / "b")
    (verdict,) = check([tmp_path], Rules(max_ssim=1.0))
    assert not verdict.passed and "name one run for each seed" in outcomes(verdict)["seeds"].text
    assert all(verdict.passed for verdict in check([tmp_path / "a", tmp_path / "a"], Rules(max_ssim=1.0)))


@pytest.mark.parametrize(
    "allowed, passes", [((), False), (("1",), False), (("2",), True), (("cut short",), False), (("CUT", "1"), True)]
)
def test_flags_fail_unless_they_are_allowed_and_are_said_in_any_case(tmp_path, allowed, passes):
    saved(tmp_path / "run", flags=("decoder: cut short", "too weak to judge by"))
    (verdict,) = check([tmp_path / "run"], Rules(max_ssim=1.0, allowed=allowed))
    assert verdict.passed is passes and "too weak to judge by" in outcomes(verdict)["flags"].text


def test_a_weaker_suite_than_asked_for_fails(tmp_path):
    saved(tmp_path / "run", suite="smoke-1+abc")
    for suite, passes in (("standard", False), ("smoke", True), ("smoke-1+abc", True), ("smo", False)):
        (verdict,) = check([tmp_path / "run"], Rules(max_ssim=1.0, suite=suite))
        assert verdict.passed is passes


def test_missing_and_damaged_audits_fail(tmp_path):
    saved(tmp_path / "good")
    (tmp_path / "trained").mkdir()
    (tmp_path / "trained" / "config.yaml").write_text("seed: 0\n")
    (tmp_path / "empty").mkdir()
    shutil.copytree(tmp_path / "good", tmp_path / "damaged")
    (tmp_path / "damaged" / "result.json").write_text("{}")
    lacking = audited()
    del lacking.per_image["worst/ssim"]
    lacking.save(tmp_path / "lacking")
    names = ("good", "trained", "empty", "damaged", "lacking")
    found = {name: check([tmp_path / name], Rules(max_ssim=1.0))[0] for name in names}
    assert [name for name, verdict in found.items() if verdict.passed] == ["good"]
    assert "attcem audit" in outcomes(found["trained"])["audit"].text


def test_scores_that_are_not_numbers_fail(tmp_path):
    run = audited()
    run.per_image["worst/ssim"][3] = math.nan
    run.save(tmp_path / "run")
    assert not check([tmp_path / "run"], Rules(max_ssim=1.0))[0].passed


def test_wilson_lies_near_the_exact_bound():
    for hits, count in ((0, 50), (5, 100), (80, 100), (399, 400)):
        exact = beta.ppf(0.95, hits + 1, count - hits)
        assert share_bound(hits / count, count, 1) == pytest.approx(exact, abs=0.02)
        assert share_bound(hits / count, count, -1) <= hits / count <= share_bound(hits / count, count, 1)
    assert binom.cdf(5, 100, share_bound(0.05, 100, 1)) == pytest.approx(0.05, abs=0.03)


def test_bounds_hold_as_often_as_they_say():
    rng = np.random.default_rng(0)
    free = rng.gamma(2.0, 1.0, (400, 300))
    worst = 0.5 * free * rng.uniform(0.5, 1.5, free.shape)
    low = [ratio_bound(one, other, -1) for one, other in zip(worst, free, strict=True)]
    high = [mean_bound(one, 1) for one in worst]
    assert np.mean(np.array(low) <= 0.5) == pytest.approx(0.95, abs=0.03)
    assert np.mean(np.array(high) >= 1.0) == pytest.approx(0.95, abs=0.03)
    assert mean_bound(np.array([0.3]), 1) == math.inf  # one value says nothing of its spread


def test_what_machines_read(tmp_path):
    saved(tmp_path / "run", flags=("odd \x00 <flag> &",))
    verdicts = check([tmp_path / "run"], Rules(max_ssim=0.2, min_accuracy=0.5))
    root = ElementTree.fromstring(junit(verdicts).split("\n", 1)[1])
    assert root.attrib["tests"] == "3" and root.attrib["failures"] == "2"
    assert "at most" in root.find(".//testcase[@name='ssim']/failure").attrib["message"]
    data = json.loads(to_json(verdicts))
    ssim = next(rule for rule in data["settings"][0]["rules"] if rule["rule"] == "ssim")
    assert not data["passed"] and ssim["threshold"] == 0.2 < ssim["value"] < ssim["bound"]
    assert set(ssim) == {field.name for field in dataclasses.fields(verdicts[0].outcomes[0])}


def test_exit_codes(tmp_path, capsys):
    run = str(saved(tmp_path / "run"))
    assert main(["check", run, "--max-ssim", "0.5"]) == 0
    assert "PASS  ssim 0.29" in capsys.readouterr().out
    assert main(["check", run, "--max-ssim", "0.2", "--junit", str(tmp_path / "j.xml")]) == 1
    captured = capsys.readouterr()
    assert "FAIL  ssim 0.29" in captured.out and "1 of 2 rules fail" in captured.err and (tmp_path / "j.xml").exists()
    for wrong in ([run], [run, "--max-ssim", "nan"], ["nowhere", "--max-ssim", "1"], [run, "--max-sim", "1"]):
        assert main(["check", *wrong]) == 2
