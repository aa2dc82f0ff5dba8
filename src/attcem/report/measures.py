"""The worst case by what it is about: pixels, structure, looks, the class, the person; each over all attacks."""

import math
from collections.abc import Sequence

from attcem.language import phrase
from attcem.report.charts import Grid
from attcem.runs import Setting
from attcem.runs.leak import best_attack
from attcem.runs.numbers import MISSING, Show, mean, ratio, small

ABOUT: dict[str, tuple[str, Show]] = {
    "mse": (phrase("pixels"), small),
    "ssim": (phrase("structure"), ratio),
    "feature_distance": (phrase("looks"), ratio),
    "lpips": (phrase("looks"), ratio),
    "recon_acc": (phrase("the class"), ratio),
    "person_top1": (phrase("the person"), ratio),
}
"""Measure → what it is about, as far as a run has it."""


def measures_table(settings: Sequence[Setting]) -> Grid | None:
    """Of every measure the worst case, image by image, the one attack that is best by it, and the mean image.

    The names of attacks are those of the first seed.
    """
    lines = []
    for setting in settings:
        for measure, (about, show) in ABOUT.items():
            runs = [run for run in setting.runs if measure in run.worst.named()]
            best = [best_attack(run, run.attacks, measure) for run in runs]
            if not runs:
                continue
            alone = [run.attacks[name].named()[measure] for run, name in zip(runs, best, strict=True) if name]
            free = [run.baselines["mean_image"].named().get(measure, math.nan) for run in runs if run.baselines]
            reached = [show(mean(values)) for values in ([run.worst.named()[measure] for run in runs], alone, free)]
            lines.append([setting.name, about, measure, best[0] or MISSING, *reached])
    heading = [
        phrase("setting"),
        phrase("about"),
        phrase("measure"),
        phrase("best attack"),
        phrase("worst case"),
        phrase("that attack"),
        phrase("mean image"),
    ]
    return Grid(heading, lines, words=4) if lines else None
