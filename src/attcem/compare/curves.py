"""Curves: a defence at its strengths, a line for each seed, all ending at the undefended run."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from attcem.compare.settings import chain, label, links, numbers, training
from attcem.metrics.stats import area_under, interpolate
from attcem.twins import find_twins
from attcem.types import Result

STRENGTHS = {"lam", "sigma", "epsilon", "eps", "ratio", "rate", "strength", "weight", "loss_scale"}
"""Options that say how strong a defence is; where none of them varies, any number that does."""
NEAR = 5e-5
"""An accuracy typed with four digits means the run that is printed so."""


class Span(NamedTuple):
    """From the lowest accuracy to the highest."""

    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.low:.4f}–{self.high:.4f}" if self.low < self.high else f"{self.low:.4f}"


@dataclass(frozen=True)
class Curve:
    """One defence: its runs at all strengths and seeds, and its undefended twins."""

    name: str
    chain: str
    own: tuple[Result, ...]
    undefended: tuple[Result, ...]

    @cached_property
    def lines(self) -> dict[int, list[Result]]:
        """Seed → its runs, the undefended one among them as the end where the strength is zero."""
        seeds = sorted({run.seed for run in self.own})
        return {seed: [run for run in (*self.own, *self.undefended) if run.seed == seed] for seed in seeds}

    @property
    def strengths(self) -> int:
        """How many different strengths were run."""
        return len({json.dumps(numbers(run), sort_keys=True) for run in self.own})

    @property
    def uneven(self) -> bool:
        """Whether some seed lacks a point that another has."""
        return len({len(runs) for runs in self.lines.values()}) > 1

    @cached_property
    def span(self) -> Span:
        """The accuracies that the lines of all seeds reach; with low > high if there are none."""
        accuracies = [[run.accuracy for run in runs] for runs in self.lines.values()]
        return Span(max(map(min, accuracies)), min(map(max, accuracies)))

    @property
    def highest(self) -> float:
        """The highest accuracy that all seeds reach with the defence on."""
        return min(max(run.accuracy for run in self.own if run.seed == seed) for seed in self.lines)

    def line(self, seed: int, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """One seed's accuracies, and the scores of every image at each."""
        runs = self.lines[seed]
        scores = np.stack([run.per_image[f"worst/{metric}"] for run in runs]).astype(np.float64)
        return np.array([run.accuracy for run in runs], dtype=np.float64), scores

    def at(self, accuracy: float, metric: str) -> dict[int, np.ndarray]:
        """The scores of every image at this accuracy, for each seed whose line reaches it."""
        found = {}
        for seed in self.lines:
            accuracies, scores = self.line(seed, metric)
            nearest = float(np.clip(accuracy, accuracies.min(), accuracies.max()))
            reached = interpolate(nearest, accuracies, scores)
            if reached is not None and abs(nearest - accuracy) <= NEAR:
                found[seed] = reached
        return found

    def areas(self, span: Span, metric: str) -> list[float]:
        """The mean score along a span, of each seed."""
        lines = (self.line(seed, metric) for seed in self.lines)
        return [area_under(accuracies, scores.mean(1), *span) for accuracies, scores in lines]


Key = tuple[str, str]
"""A family (chain, words and training as JSON), and the chain as it is written."""


def curves_of(runs: Sequence[Result]) -> list[Curve]:
    """Group runs into curves, in order of appearance, and give each a name of its own."""
    bare = [run for run in runs if not links(run)]
    twins = {id(run): twin for run, twin in zip(runs, find_twins(runs), strict=True) if twin}
    groups = _grouped([run for run in runs if links(run)])
    for group in (bare, *groups.values()):
        _refuse_copies(group)
    written = {key: key[1] + _training_apart(key, groups) for key in groups}
    stems = {key: _stem(group) for key, group in groups.items()}
    return [
        Curve(
            name=written[key] if _taken(key, stems, written) else stems[key],
            chain=written[key],
            own=tuple(group),
            undefended=tuple({id(twin): twin for run in group if (twin := twins.get(id(run)))}.values()),
        )
        for key, group in groups.items()
    ]


def _taken(key: Key, stems: Mapping[Key, str], written: Mapping[Key, str]) -> bool:
    """Whether a curve's own name is missing, or could mean another curve."""
    return not stems[key] or any(stems[key] in (stems[other], written[other]) for other in stems if other != key)


def _grouped(runs: Sequence[Result]) -> dict[Key, list[Result]]:
    """Runs whose chain, words and training agree are one family; numbers other than its strengths divide it."""
    families: dict[str, list[Result]] = {}
    for run in runs:
        families.setdefault(json.dumps([chain(run), training(run)], sort_keys=True, default=str), []).append(run)
    groups: dict[Key, list[Result]] = {}
    for family, members in families.items():
        names = {name for run in members for name in numbers(run)}
        varying = {name for name in names if len({numbers(run).get(name) for run in members}) > 1}
        strengths = {name for name in varying if name.rpartition(".")[2] in STRENGTHS} or varying
        for run in members:
            groups.setdefault((family, chain(run, varying - strengths)), []).append(run)
    return groups


def _refuse_copies(runs: Sequence[Result]) -> None:
    """A run that is there twice would count twice."""
    seen = Counter((label(run), json.dumps(training(run), sort_keys=True, default=str)) for run in runs)
    for (name, _), times in seen.items():
        if times > 1:
            raise ValueError(f"{times} runs of {name} have the same settings: name only one of them")


def _training_apart(key: Key, groups: Mapping[Key, Sequence[Result]]) -> str:
    """The training settings that tell a curve from others of the same chain."""
    ours = training(groups[key][0])
    others = [training(group[0]) for other, group in groups.items() if other != key and other[1] == key[1]]
    telling = dict.fromkeys(name for its in others for name in {**ours, **its} if ours.get(name) != its.get(name))
    return f" [{', '.join(f'{name}={ours.get(name)}' for name in telling)}]" if telling else ""


def _stem(runs: Sequence[Result]) -> str:
    """The experiments' own name without the strength at its end; empty if they do not agree on one."""
    stems = {re.sub(r"[-_ ]+[a-z]*=?\d[\d.e+-]*$", "", run.config.get("name") or "") for run in runs}
    return stems.pop() if len(stems) == 1 else ""
