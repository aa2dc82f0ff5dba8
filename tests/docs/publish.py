"""Finished runs become published ones: results and scores of every picture, without pictures and weights.

python -m tests.docs.publish runs/crossings_cifar10      # to results/crossings_cifar10; then `make results`

Of each attack only the squared error is kept, which shows who found what; of the worst case, every measure.
"""

import shutil
import sys
from pathlib import Path

import numpy as np

from attcem.files import replacing
from attcem.types import Result
from tests.docs.pages import ROOT

KEPT = "config.yaml", "history.csv", "result.json"


def is_kept(score: str) -> bool:
    who, _, measure = score.rpartition("/")
    return who == "worst" or who.startswith("probe") or measure == "mse"


def publish(runs: Path, out: Path) -> list[str]:
    """The names of the runs that are published now."""
    names = sorted(path.parent.name for path in runs.glob("*/result.json"))
    for name in names:
        Result.load(runs / name)  # raises where it is damaged
        (out / name).mkdir(parents=True, exist_ok=True)
        for file in KEPT:
            shutil.copyfile(runs / name / file, out / name / file)
        scores = np.load(runs / name / "diagnostics.npz")
        with replacing(out / name / "diagnostics.npz") as file:
            np.savez_compressed(file, **{score: scores[score] for score in scores.files if is_kept(score)})
    return names


if __name__ == "__main__":
    for folder in map(Path, sys.argv[1:]):
        found = publish(folder, ROOT / "results" / folder.name)
        print(f"{len(found)} runs in results/{folder.name}: now `make results`")
