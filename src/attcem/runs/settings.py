"""Settings: runs that differ only in their seed, with a name a reader understands; and a run's undefended twin."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from attcem.runs.config import (
    beside_maps,
    crossing,
    differences,
    differing,
    grouped,
    links,
    options,
    strengths,
    surroundings,
)
from attcem.runs.described import described
from attcem.runs.leak import recovered_share
from attcem.runs.names import name_setting, show_value
from attcem.runs.numbers import mean
from attcem.types import Result

Place = tuple[str, str]
BROKEN_FROM = 18.0
"""PSNR in dB that the attacks must reach on the undefended twin: below it they could not break anything."""


@dataclass(frozen=True)
class Setting:
    """Runs of the same settings, each with its own seed; numbers are means over them, leakage is the worst case's."""

    runs: tuple[Result, ...]
    name: str = ""
    family: str = ""  # what it shares with the same defence at other strengths

    @cached_property
    def surroundings(self) -> dict[str, Any]:
        """All but the defence and seeds of any kind."""
        return {key: value for key, value in surroundings(self.runs[0]).items() if key.rpartition(".")[2] != "seed"}

    @property
    def place(self) -> Place:
        """Data set and backbone: only runs in the same place are compared."""
        return str(self.surroundings.get("data.name", "data")), str(self.surroundings.get("model.backbone", "model"))

    @property
    def suite(self) -> str:
        return str(self.surroundings.get("audit.suite", ""))

    @property
    def undefended(self) -> bool:
        return not links(self.runs[0])

    @property
    def seeds(self) -> int:
        return len({run.seed for run in self.runs})

    @property
    def accuracy(self) -> float:
        return mean([run.accuracy for run in self.runs])

    @property
    def mse(self) -> float:
        return mean([run.worst.mse for run in self.runs])

    @property
    def ssim(self) -> float:
        return mean([run.worst.ssim for run in self.runs])

    @property
    def attacks(self) -> int:
        """How many attacks count for the worst case."""
        return max(len(run.attacks) - len(run.repeated) for run in self.runs)

    @property
    def recovered(self) -> float:
        return mean([recovered_share(run.worst, run) for run in self.runs])

    def described(self, by: str = "mean") -> float:
        """The share of pictures of which all attributes are told, or that by chance."""
        return mean([described(run, by) for run in self.runs])

    def baseline(self, name: str) -> float:
        return mean([run.baselines[name].mse for run in self.runs if name in run.baselines])

    def label(self, run: Result) -> str:
        return f"{self.name}, seed {run.seed}" if len(self.runs) > 1 else self.name


def places(settings: Iterable[Setting]) -> dict[Place, list[Setting]]:
    return {members[0].place: members for members in grouped(settings, lambda setting: setting.place)}


def settings_of(results: Iterable[Result]) -> list[Setting]:
    """Group runs by all their settings but seeds; undefended first, then in order of appearance."""
    groups = grouped(results, lambda run: [links(run), Setting((run,)).surroundings])
    settings = [_named(runs, [group[0] for group in groups]) for runs in groups]
    return sorted((_unlike_namesakes(setting, settings) for setting in settings), key=lambda s: not s.undefended)


def _named(runs: Sequence[Result], others: Sequence[Result]) -> Setting:
    """A name of strengths, and of the options that differ from the same chain elsewhere."""
    same_chain = [options(other) for other in others if list(links(other)) == list(links(runs[0]))]
    varying, strong = set(differing(options(runs[0]), same_chain)), strengths(runs[0])
    names = (name_setting(runs[0], shown) for shown in (strong | varying, varying - strong))
    return Setting(tuple(sorted(runs, key=lambda run: run.seed)), *names)


def _unlike_namesakes(setting: Setting, settings: Iterable[Setting]) -> Setting:
    """Add to a name that several settings share what differs between them."""
    ours = setting.surroundings
    namesakes = [s.surroundings for s in settings if (s.name, s.place) == (setting.name, setting.place)]
    listed = ", ".join(f"{key}={show_value(key, ours[key])}" for key in differing(ours, namesakes))
    return replace(setting, name=f"{setting.name} ({listed})") if listed else setting


def find_twins(runs: Sequence[Result]) -> list[Result | None]:
    """For each run the first among them that differs in nothing but having no defence; an undefended one has none."""

    def twins(run: Result, other: Result) -> bool:
        ours, theirs = surroundings(run), surroundings(other)
        return run.seed == other.seed and ours == (beside_maps(theirs) if crossing(run) else theirs)

    bare = [run for run in runs if not links(run)]
    return [next((other for other in bare if links(run) and twins(run, other)), None) for run in runs]


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
