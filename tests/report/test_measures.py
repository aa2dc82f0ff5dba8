"""The worst case by measure: another attack may be the best, and measures that a run lacks are left out."""

from dataclasses import replace

from attcem.report.measures import measures_table
from attcem.runs import settings_of
from attcem.runs.leak import best_attack
from attcem.types import Summary
from tests.report.made import make_result


def blurred_or_sharp():
    """One attack is nearer in pixels, the other shows more."""
    run = make_result()
    n = run.worst.mse.n
    shown = {"blurred": (0.010, 0.40, 0.30), "sharp": (0.012, 0.35, 0.60)}
    for name, (mse, ssim, recognised) in shown.items():
        like = next(iter(run.attacks.values()))
        found = {"mse": mse, "ssim": ssim, "recon_acc": recognised}
        scores = {metric: Summary(value, value, value, n) for metric, value in found.items()}
        run.attacks[name] = replace(like, **scores, more={"feature_distance": Summary(1 - recognised, 0, 1, n)})
    run.attacks = {name: run.attacks[name] for name in shown}
    run.worst = replace(run.worst, more={"feature_distance": Summary(0.4, 0, 1, n)})
    return run


def test_each_measure_names_its_own_attack():
    run = blurred_or_sharp()
    best = {
        metric: best_attack(run, run.attacks, metric) for metric in ("mse", "ssim", "recon_acc", "feature_distance")
    }
    assert best == {"mse": "blurred", "ssim": "blurred", "recon_acc": "sharp", "feature_distance": "sharp"}
    assert best_attack(run, run.attacks, "lpips") is None
    grid = measures_table(settings_of([run]))
    assert [line[1:4] for line in grid.lines] == [
        ["pixels", "mse", "blurred"],
        ["structure", "ssim", "blurred"],
        ["looks", "feature_distance", "sharp"],
        ["the class", "recon_acc", "sharp"],
    ]
