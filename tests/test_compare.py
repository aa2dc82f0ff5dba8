"""Comparisons of made-up runs whose truth is known: gaps that were planted, curves that meet, runs that do not fit."""

import csv
import json
import math
from typing import Any

import numpy as np
import pytest

from attcem.compare import FORMATS, Comparison, Row, compare, read_runs
from attcem.compare.curves import curves_of
from attcem.metrics.stats import holm, paired_bootstrap
from attcem.types import Result
from tests.report.made import make_result

IMAGES = 60
PROFILE = np.random.default_rng(0).uniform(-0.008, 0.008, IMAGES)
PROFILE -= PROFILE.mean()
"""How much harder each picture is than the average one, whatever the defence."""
TRAIN = {"epochs": 5, "ramp": 0.0}


def made(defence: Any, accuracy: float, mse: float, seed: int = 0, jitter: float = 0.0, **changes: Any) -> Result:
    """A run whose per-image MSE averages to `mse`, with noise of its own on every image."""
    rng = np.random.default_rng([seed, int(1e6 * accuracy), int(1e6 * abs(mse))])
    noise = jitter * rng.normal(size=IMAGES)
    config = {"data": {"name": "fashion", "seed": 0}, "train": TRAIN, "audit": {"suite": "demo", "images": 60}}
    flags = changes.pop("flags", ())
    run = make_result(
        mse=mse, accuracy=accuracy, defence=defence, seed=seed, pictures=0, flags=flags, **(config | changes)
    )
    values = mse + PROFILE + noise - noise.mean()
    run.per_image = {"worst/mse": values.astype(np.float32), "worst/ssim": 1 - 10 * values, "worst/psnr": -values}
    return run


def noise(sigma: float) -> dict[str, Any]:
    return {"noise": {"sigma": sigma}}


def bound(lam: float, assign: str = "slot", **options: Any) -> dict[str, Any]:
    return noise(0.1) | {"bound": {"lam": lam, "assign": assign, **options}}


def planted(gap: float, seeds: int = 3, jitter: float = 0.001) -> list[Result]:
    """Noise loses 0.1 MSE per accuracy point; the bound lies `gap` above it; no defence has 0.02 at 0.9."""
    runs = []
    for seed in range(seeds):
        runs.append(made({}, 0.9, 0.02, seed, jitter))
        for strength, accuracy in ((1, 0.8), (2, 0.7), (4, 0.6)):
            runs.append(made(noise(strength), accuracy, 0.02 + 0.1 * (0.9 - accuracy), seed, jitter))
            runs.append(made(bound(strength), accuracy, 0.02 + 0.1 * (0.9 - accuracy) + gap, seed, jitter))
    return runs


def row(comparison: Comparison, name: str) -> Row:
    return next(row for row in comparison.rows if row.defence == name)


BOUND = "noise + bound(assign=slot)"


def quickly(runs: list[Result], **options: Any) -> Comparison:
    return compare(runs, draws=400, **options)


def test_a_planted_gap_is_found_with_its_size_between_two_strengths():
    found = quickly(planted(0.005), at_accuracy=0.65)
    ours, plain = row(found, BOUND), row(found, "noise")
    assert found.reference == "noise" and plain.verdict == "reference"
    assert plain.mean == pytest.approx(0.045, abs=1e-6) and ours.mean == pytest.approx(0.05, abs=1e-6)
    assert ours.difference == pytest.approx(0.005, abs=1e-6)
    assert 0.004 < ours.difference_low <= 0.005 <= ours.difference_high < 0.006
    assert ours.p < 0.01 and ours.wilcoxon_p < 0.01
    assert ours.verdict == "hides more" and ours.notes == ()
    assert (ours.strengths, ours.seeds) == (3, 3)


def test_what_is_better_depends_on_the_metric_and_on_the_side():
    runs = planted(0.005)
    assert row(quickly(runs, at_accuracy=0.65, metric="ssim"), BOUND).verdict == "hides more"
    assert row(quickly(runs, at_accuracy=0.65, metric="ssim"), BOUND).difference == pytest.approx(-0.05, abs=1e-5)
    assert row(quickly(runs, at_accuracy=0.65, metric="psnr"), BOUND).verdict == "hides more"
    assert row(quickly(runs, at_accuracy=0.65, against=BOUND), "noise").verdict == "hides less"


def test_identical_defences_are_not_significant():
    ours = row(quickly(planted(0.0, jitter=0.0), at_accuracy=0.65), BOUND)
    assert ours.verdict == "not significant" and ours.difference == pytest.approx(0, abs=1e-8)


def test_equal_defences_whose_seeds_scatter_are_seldom_called_different():
    alarms = 0
    for trial in range(40):
        rng = np.random.default_rng(trial)
        runs = [
            made(defence, accuracy, 0.05 + 0.002 * rng.normal(), seed, jitter=0.004)
            for seed in range(3)
            for defence in (noise(1), bound(1))
            for accuracy in (0.7,)
        ]
        alarms += row(quickly(runs, at_accuracy=0.7, seed=trial), BOUND).verdict != "not significant"
    assert alarms <= 4


def test_on_a_run_the_value_is_that_runs():
    runs = planted(0.005, seeds=1)
    (curve, _) = curves_of(runs)
    run = next(run for run in runs if run.config["defence"] == noise(2))
    assert np.array_equal(curve.at(0.7, "mse")[0], run.per_image["worst/mse"])
    assert row(quickly(runs, at_accuracy=0.7), "noise").mean == pytest.approx(run.per_image["worst/mse"].mean())


def test_between_two_runs_every_image_lies_on_its_own_line():
    runs = planted(0.005, seeds=1)
    (curve, _) = curves_of(runs)
    left, right = (next(run for run in runs if run.config["defence"] == noise(s)) for s in (2, 4))
    along = 0.25 * left.per_image["worst/mse"] + 0.75 * right.per_image["worst/mse"]
    assert curve.at(0.625, "mse")[0] == pytest.approx(along, abs=1e-7)


def test_the_undefended_run_ends_every_curve_so_there_they_all_agree():
    runs = planted(0.005)
    found = quickly(runs, at_accuracy=0.9)
    assert [line.mean for line in found.rows] == pytest.approx([0.02, 0.02], abs=1e-6)
    assert row(found, BOUND).verdict == "not significant" and row(found, BOUND).difference == 0
    between = row(quickly(runs, at_accuracy=0.85), BOUND)
    assert between.difference == pytest.approx(0.0025, abs=1e-6)  # half way to a gap of 0.005


def test_the_undefended_run_of_another_training_is_not_an_end():
    runs = [run for run in planted(0.005) if run.config["defence"]]
    runs += [made({}, 0.9, 0.02, seed, train={"epochs": 50}) for seed in range(3)]
    with pytest.raises(ValueError, match=r"noise does not reach accuracy 0\.8500 \(0\.6000–0\.8000\)"):
        quickly(runs, at_accuracy=0.85)


def test_nothing_is_extrapolated():
    runs = [
        *planted(0.005),
        *(made({"gmm": {"lam": lam}}, 0.9 - lam / 100, 0.03, s) for s in range(3) for lam in (1, 5)),
    ]
    found = quickly(runs, at_accuracy=0.65)
    beyond = row(found, "gmm")
    assert beyond.verdict == "not reached" and math.isnan(beyond.mean) and math.isnan(beyond.p)
    assert row(found, BOUND).p == row(quickly(planted(0.005), at_accuracy=0.65), BOUND).p  # one test, not two


def test_without_an_accuracy_it_is_the_highest_that_all_reach_with_their_defence_on():
    runs = [*planted(0.005), *(made({"gmm": {"lam": 1}}, accuracy, 0.04, s) for s in range(3) for accuracy in (0.75,))]
    found = quickly(runs)
    assert found.accuracy == 0.75 and "highest" in found.chosen
    late = [made({"gmm": {"lam": 1}}, 0.85, 0.04, s) for s in range(3)]
    found = quickly([*planted(0.005), *late])
    assert found.accuracy == 0.85 and "lowest" in found.chosen and row(found, "gmm").mean == pytest.approx(0.04)


def test_without_a_common_accuracy_the_error_names_the_spans():
    runs = [made(noise(1), 0.7, 0.04), made(noise(2), 0.6, 0.05), made(bound(1), 0.8, 0.04)]
    with pytest.raises(
        ValueError, match=r"noise 0\.6000–0\.7000, noise \+ bound\(assign=slot\) 0\.8000.*--at-accuracy"
    ):
        quickly(runs)


def test_one_strength_is_compared_at_its_own_accuracy_and_nowhere_else():
    runs = [run for run in planted(0.005) if run.config["defence"]]
    runs += [made({"gmm": {"lam": 1}}, 0.71234, 0.05, seed) for seed in range(3)]
    assert row(quickly(runs, at_accuracy=0.7123), "gmm").mean == pytest.approx(0.05, abs=1e-6)
    elsewhere = row(quickly(runs, at_accuracy=0.7), "gmm")
    assert elsewhere.verdict == "not reached" and "one strength only: run more" in elsewhere.notes


@pytest.mark.parametrize(
    ("seeds", "note"), [(1, "1 seed: interval over images only, another training may turn it"), (2, "only 2 seeds")]
)
def test_few_seeds_are_said_in_the_line(seeds, note):
    found = quickly(planted(0.005, seeds=seeds), at_accuracy=0.65)
    assert note in row(found, BOUND).notes
    assert note in FORMATS["text"](found).splitlines()[-1]


def test_a_difference_is_over_the_seeds_that_both_have():
    runs = planted(0.005)
    fewer = [run for run in runs if run.seed == 0 or "bound" not in run.config["defence"]]
    ours = row(quickly(fewer, at_accuracy=0.65), BOUND)
    assert ours.seeds == 1 and "1 seed: interval over images only, another training may turn it" in ours.notes
    apart = [run for run in runs if (run.seed == 0) == ("bound" in run.config["defence"])]
    assert row(quickly(apart, at_accuracy=0.65), BOUND).verdict == "no seed in common with the reference"


def test_seeds_that_do_not_reach_or_lack_a_strength_are_mentioned():
    runs = [run for run in planted(0.005) if not (run.seed == 2 and run.config["defence"] == bound(4))]
    ours = row(quickly(runs, at_accuracy=0.65), BOUND)
    assert "reached by 2 of 3 seeds" in ours.notes and "not every seed has every strength" in ours.notes


def test_p_are_corrected_over_the_comparisons():
    rng = np.random.default_rng(1)
    third = {"gated": {"lam": 1.0}}
    runs = [
        made(defence, 0.7, mse + 0.001 * rng.normal(), seed, jitter=0.003)
        for seed in range(4)
        for defence, mse in ((noise(1), 0.04), (bound(1), 0.0418), (third, 0.0405))
    ]
    tables = {c.name: np.stack(list(c.at(0.7, "mse").values())) for c in curves_of(runs)}
    raw = [paired_bootstrap(tables[name], tables["noise"], draws=400).p for name in (BOUND, "gated")]
    found = quickly(runs, at_accuracy=0.7)
    assert [row(found, name).p for name in (BOUND, "gated")] == holm(raw) != raw


def test_the_area_is_the_mean_height_over_the_common_span():
    found = quickly(planted(0.005))
    assert found.area_span == (0.6, 0.9)
    assert row(found, "noise").area == pytest.approx(0.035, abs=1e-6)  # from 0.02 straight to 0.05
    assert row(found, BOUND).area == pytest.approx(0.035 + 0.005 * 2 / 3 + 0.0025 / 3, abs=1e-6)
    assert row(found, "noise").area_std == pytest.approx(0, abs=1e-6)


def test_deviation_is_over_seeds():
    runs = [made(defence, 0.7, 0.04 + 0.01 * seed, seed) for defence in (noise(1), bound(1)) for seed in range(3)]
    found = quickly(runs, at_accuracy=0.7)
    assert row(found, "noise").mean == pytest.approx(0.05) and row(found, "noise").std == pytest.approx(0.01)


def test_words_tell_curves_apart_and_strengths_do_not():
    runs = [made(bound(lam, assign), 0.8 - lam / 10, 0.04) for assign in ("slot", "class") for lam in (1, 2)]
    assert [(c.name, c.strengths) for c in curves_of(runs)] == [(BOUND, 2), ("noise + bound(assign=class)", 2)]


def test_numbers_that_are_no_strength_tell_curves_apart_when_a_strength_varies_too():
    runs = [made(bound(lam, slots=slots), 0.8 - lam / 10, 0.04) for slots in (4, 8) for lam in (1, 2)]
    names = [curve.name for curve in curves_of(runs)]
    assert names == ["noise + bound(assign=slot, slots=4)", "noise + bound(assign=slot, slots=8)"]
    alone = [made({"topk": {"kept": kept}}, 0.8 - kept / 100, 0.04) for kept in (1, 2, 3)]
    assert [(curve.name, curve.strengths) for curve in curves_of(alone)] == [("topk", 3)]


def test_other_training_makes_another_curve_and_is_said():
    runs = [made(noise(s), 0.8 - s / 10, 0.04, train={"epochs": e}) for e in (5, 8) for s in (1, 2)]
    assert [curve.name for curve in curves_of(runs)] == ["noise [train.epochs=5]", "noise [train.epochs=8]"]
    found = quickly(runs, at_accuracy=0.65)
    assert "trained differently (train.epochs: 5 and 8)" in found.rows[1].notes


def test_a_setting_that_is_off_equals_one_that_did_not_exist_yet_and_machines_do_not_matter():
    runs = [
        made(noise(1), 0.7, 0.04, train={"epochs": 5}),
        made(noise(2), 0.6, 0.05, train={"epochs": 5, "ramp": 0.0, "start_from": None, "device": "cuda"}),
    ]
    assert [curve.strengths for curve in curves_of(runs)] == [2]


def test_experiments_that_have_a_name_lend_it_to_the_curve():
    runs = [made(bound(lam), 0.8 - lam / 10, 0.04, name=f"ours-{lam}") for lam in (1.0, 2.5)]
    runs += [made(noise(s), 0.8 - s / 10, 0.04, name=f"noise_sigma{s}") for s in (1, 2)]
    assert [(c.name, c.chain) for c in curves_of(runs)] == [("ours", BOUND), ("noise", "noise")]
    assert quickly(runs, at_accuracy=0.65, against=BOUND).reference == "ours"
    same = [made(bound(1, assign), 0.7, 0.04, name="mine") for assign in ("slot", "class")]
    assert [c.name for c in curves_of(same)] == [BOUND, "noise + bound(assign=class)"]


def test_a_name_that_is_another_curves_chain_is_not_used():
    runs = [made(bound(1), 0.7, 0.04, name="noise"), made(noise(1), 0.7, 0.04)]
    assert [c.name for c in curves_of(runs)] == [BOUND, "noise"]


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


def test_flags_come_first_and_mark_their_lines():
    runs = planted(0.005)
    runs += [made({"gmm": {"lam": 1}}, 0.7, 0.04, s, flags=("cut short",) * (s > 0)) for s in range(3)]
    found = quickly(runs)
    text = FORMATS["text"](found).splitlines()
    assert text[0] == "flagged: cut short (gmm: 2 of 3 runs)"
    assert [line.flagged for line in found.rows] == [False, False, True]
    assert text[-1].endswith("flagged") and not text[-2].endswith("flagged")
    assert (
        FORMATS["markdown"](found).startswith("flagged: ") and next(iter(json.loads(FORMATS["json"](found)))) == "flags"
    )


def test_a_flag_of_the_undefended_run_marks_every_curve_that_ends_there():
    runs = planted(0.005)
    runs[0].flags = ["too weak to judge by"]
    found = quickly(runs)
    assert all(line.flagged for line in found.rows) and found.flags == (
        "too weak to judge by (no defence: 1 of 3 runs)",
    )


def test_text_lines_up_and_says_where_and_against_what():
    text = FORMATS["text"](quickly(planted(0.005))).splitlines()
    assert text[0].startswith("worst-case MSE at accuracy 0.8000, the highest that all reach with their defence on")
    assert "difference from noise" in text[1] and "1 comparison" in text[1] and "0.6000–0.9000" in text[2]
    heading, reference, ours = text[-3:]
    assert heading.index("verdict") == reference.index("reference") == ours.index("hides more")
    assert "+0.00500" in ours and "<0.001" in ours


def test_markdown_csv_and_json_hold_the_same_numbers():
    found = quickly([*planted(0.005), *(made({"gmm": {"lam": 1}}, 0.85, 0.03, s) for s in range(3))], at_accuracy=0.65)
    table = [line for line in FORMATS["markdown"](found).splitlines() if line.startswith("|")]
    assert len(table) == 5 and len({line.count("|") for line in table}) == 1
    records = list(csv.DictReader(FORMATS["csv"](found).splitlines()))
    data = json.loads(FORMATS["json"](found))
    assert [record["defence"] for record in records] == [entry["defence"] for entry in data["rows"]]
    assert float(records[1]["difference"]) == data["rows"][1]["difference"] == row(found, BOUND).difference
    assert records[2]["mean"] == "" and data["rows"][2]["mean"] is None
    assert data["accuracy"] == 0.65 and records[0]["metric"] == "mse" and records[0]["reference"] == "noise"


def test_runs_are_found_at_any_depth_and_read_once(tmp_path):
    for number, run in enumerate(planted(0.005, seeds=1)):
        run.save(tmp_path / "runs" / f"deep{number % 2}" / str(number))
    runs = read_runs([tmp_path / "runs", tmp_path / "runs" / "deep0"])
    assert len(runs) == 7
    assert row(quickly(runs, at_accuracy=0.65), BOUND).difference == pytest.approx(0.005, abs=1e-6)
    with pytest.raises(ValueError, match=r"nowhere holds no result\.json: make runs first"):
        read_runs([tmp_path / "nowhere"])
