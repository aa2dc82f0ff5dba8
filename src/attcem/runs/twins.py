"""A run's twin: the same data, network, training, audit and seed without the defence."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace

from attcem.runs.config import differences, links, surroundings
from attcem.runs.settings import Setting
from attcem.types import Result

BROKEN_FROM = 18.0
"""PSNR in dB that the attacks must reach on the undefended twin: below it they could not break anything."""


def find_twins(runs: Sequence[Result]) -> list[Result | None]:
    """For each run the first among them that differs in nothing but having no defence; an undefended one has none."""
    rest = [json.dumps([surroundings(run), run.seed], sort_keys=True, default=str) for run in runs]
    bare = dict(reversed([(key, run) for key, run in zip(rest, runs, strict=True) if not links(run)]))
    return [bare.get(key) if links(run) else None for key, run in zip(rest, runs, strict=True)]


def most_alike(setting: Setting, undefended: Sequence[Setting]) -> Setting | None:
    """The undefended setting that differs from this one in the fewest settings; none where there is none."""
    return min(undefended, key=lambda bare: len(differences(setting.surroundings, bare.surroundings)), default=None)


def with_twins(runs: Sequence[Result]) -> list[Result]:
    """The runs, with a flag where the same suite could not break the same network without the defence: its twin."""
    flagged = []
    for run, twin in zip(runs, find_twins(runs), strict=True):
        reached = float(twin.worst.psnr) if twin else math.inf
        weak = f"on the undefended twin the attacks reach {reached:.1f} dB, below {BROKEN_FROM:g}: too weak to judge by"
        flags = list(dict.fromkeys([*run.flags, weak]))
        flagged.append(replace(run, flags=flags) if reached < BROKEN_FROM else run)
    return flagged
