"""Runs that do not fit together are refused by name."""

from __future__ import annotations

import re

import numpy as np
import pytest

from attcem.compare import comparison_tables
from attcem.types import Result
from tests.compare.planted import IMAGES, PROFILE, bound, made, noise, planted, quickly

OTHER = {
    "data.name": {"data": {"name": "cifar10", "seed": 0}},
    "data.seed": {"data": {"name": "fashion", "seed": 3}},
    "model.cut": {"model": {"backbone": "vgg11_bn", "cut": 2, "bottleneck": None}},
    "audit.suite": {"audit": {"suite": "standard", "images": 60}},
    "audit.images": {"audit": {"suite": "demo", "images": 90}},
    "audit.seed": {"audit": {"suite": "demo", "images": 60, "seed": 1}},
}


@pytest.mark.parametrize("what", OTHER)
def test_runs_that_answer_different_questions_are_refused(what):
    with pytest.raises(ValueError, match=f"not comparable: noise.*bound.*differ in {what}: "):
        quickly([made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04, **OTHER[what])])


def test_other_attacks_other_pictures_or_fewer_of_them_are_refused():
    for spoil, message in (
        (lambda run: run.attacks.pop("ridge"), "attacks: decoder, ridge and decoder"),
        (lambda run: run.per_image.update({"worst/mse": np.ones(50)}), "attacked images: 60 and 50"),
        (lambda run: run.per_image.update({"mean_image/mse": PROFILE[::-1]}), "the pictures that were attacked"),
    ):
        runs = [made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04)]
        for run in runs:
            run.per_image["mean_image/mse"] = PROFILE
        quickly(runs, at_accuracy=0.7)
        spoil(runs[1])
        with pytest.raises(ValueError, match=message):
            quickly(runs, at_accuracy=0.7)


@pytest.mark.parametrize("what", OTHER)
def test_auditing_again_is_advised_only_where_it_helps(what):
    with pytest.raises(ValueError, match="not comparable") as refusal:
        quickly([made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04, **OTHER[what])])
    assert ("attcem audit" in str(refusal.value)) == what.startswith("audit.")


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    digests = "0123456789abcdef", "0123456700000000"
    for number, sha256 in enumerate(digests):
        made(noise(0.5), 0.7, 0.04, data={"name": "mine", "sha256": sha256[::-1]}).save(tmp_path / str(number))
    runs = [Result.load(tmp_path / str(number)) for number in (0, 1)]
    here, there = (re.escape(f"noise(sigma=0.5), seed 0 ({run.folder})") for run in runs)
    with pytest.raises(ValueError, match=f"{here} and {there} differ in data.sha256: fedcba98 and 00000000[.]"):
        quickly(runs)
    for run in runs:
        run.folder = None
    with pytest.raises(ValueError, match=r"seed 0 \(result 1\) and noise\(sigma=0.5\), seed 0 \(result 2\) differ"):
        quickly(runs)
    runs = [Result.load(tmp_path / str(number)) for number in (0, 1)]
    runs[1].config["data"] = runs[0].config["data"]
    both = re.escape(f"({runs[0].folder}, {runs[1].folder})")
    with pytest.raises(ValueError, match=rf"2 runs of noise.* have the same settings: name only one of them {both}"):
        quickly([*runs, made(bound(1), 0.7, 0.04, data=runs[0].config["data"])])


def test_two_versions_of_a_suite_are_refused_with_what_to_type():
    runs = [made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04)]
    runs[0].suite, runs[1].suite = "demo-1+70d4a90d", "demo-2+0123abcd"
    with pytest.raises(
        ValueError, match=r"audit.suite: demo-1\+70d4a90d and demo-2\+0123abcd\. .*attcem audit RUN --suite demo`"
    ):
        quickly(runs, at_accuracy=0.7)
    assert len(comparison_tables(runs)) == 2, "on a page each version has a table of its own"


def test_another_threat_model_is_refused_although_results_made_in_python_do_not_list_it_among_their_settings():
    runs = [made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04)]
    runs[1].threat = "white_box"
    with pytest.raises(ValueError, match=r"audit\.threat: query and white_box"):
        quickly(runs, at_accuracy=0.7)


def test_missing_and_broken_scores_are_named_with_their_run():
    for values, message in ((None, "no per-image scores 'worst/mse'"), (np.full(IMAGES, np.inf), "not finite")):
        runs = [made(noise(1), 0.7, 0.04), made(bound(1), 0.7, 0.04, seed=2)]
        runs[1].per_image = {} if values is None else {"worst/mse": values}
        with pytest.raises(ValueError, match=rf"bound\(lam=1, assign=slot\), seed 2 .*{message}.*attcem audit"):
            quickly(runs, at_accuracy=0.7)


def test_one_defence_is_not_a_comparison():
    with pytest.raises(ValueError, match="two defences, here is only noise"):
        quickly([made({}, 0.9, 0.02), made(noise(1), 0.8, 0.03), made(noise(2), 0.7, 0.04)])
    with pytest.raises(ValueError, match="here is only no defence"):
        quickly([made({"none": {}}, 0.9, 0.02)])


def test_wrong_names_and_accuracies_say_what_was_meant():
    with pytest.raises(ValueError, match="unknown defence 'nois': did you mean 'noise'"):
        quickly(planted(0.0), against="nois")
    with pytest.raises(ValueError, match="unknown metric 'sim': did you mean 'ssim'"):
        quickly(planted(0.0), metric="sim")
    with pytest.raises(ValueError, match=r"between 0 and 1, not at 85.*0\.85"):
        quickly(planted(0.0), at_accuracy=85)


def test_a_copy_of_a_run_is_refused():
    with pytest.raises(ValueError, match=r"2 runs of noise\(sigma=1\), seed 0 have the same settings"):
        quickly([made(noise(1), 0.7, 0.04), made(noise(1), 0.7, 0.05), made(bound(1), 0.7, 0.04)])
