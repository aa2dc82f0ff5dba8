"""Made-up runs for slides: three seeds, two strengths, an attention crossing, and what may be missing."""

import io

import numpy as np
from PIL import Image

from attcem.types import Explanation, Result
from tests.report.made import rich_result

NOISE = {"noise": {"sigma": 0.3}}
STRONG = {"noise": {"sigma": 0.6}}
SLOT = {"noise": {"sigma": 0.1}, "slot": {"lam": 16.0, "form": "mixture"}}
ATTENTION = {"attention": {"tokens": 4, "width": 16}}
FLAG = "decoder: stopped before it finished; use a longer suite"
MAP = (
    "Half of a token's attention is on 47% of the places on average (50% would be everywhere). "
    "Tokens look at different places."
)


def several(seeds: int = 2) -> list[Result]:
    """No defence, noise at two strengths, a chain, and tokens under noise."""
    rng, runs = np.random.default_rng(0), []
    for seed in range(seeds):
        for defence, crossing, mse, accuracy in (
            ({}, None, 0.01, 0.9),
            (NOISE, None, 0.03, 0.86),
            (STRONG, None, 0.05, 0.7),
            (SLOT, None, 0.04, 0.85),
            (NOISE, ATTENTION, 0.06, 0.86),
        ):
            model = {"backbone": "vgg11_bn", "cut": 4} | ({"crossing": crossing} if crossing else {})
            options = {"mse": mse * rng.uniform(0.95, 1.05), "accuracy": accuracy + rng.uniform(-0.005, 0.005)}
            run = rich_result(defence=defence, seed=seed, pictures=10, attacked=20, model=model, **options)
            run.config["data"] = {"name": "fashion", "seed": 0}
            run.flags, run.threat = [FLAG] if seed == 0 else [], "white_box"
            if crossing:
                run.explanations = [Explanation("1-crossing.png", "Where the attention at the cut looks", MAP, PNG)]
            runs.append(run)
    return runs


def bare(run: Result) -> Result:
    """As it is published: numbers, but neither pictures nor curves."""
    run.gallery, run.history, run.explanations, run.curves, run.bounds = {}, [], [], {}, {}
    return run


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (20, 60), "white").save(file, "PNG")
    return file.getvalue()


PNG = _png()
