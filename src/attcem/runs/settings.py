"""Settings: runs that differ only in their seed, with a name a reader understands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from attcem.runs.config import differing, grouped, links, options, strengths, surroundings
from attcem.runs.leak import recovered_share
from attcem.runs.names import name_setting, show_value
from attcem.runs.numbers import mean
from attcem.types import Result

Place = tuple[str, str]


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

    def baseline(self, name: str) -> float:
        """MSE of a baseline."""
        return mean([run.baselines[name].mse for run in self.runs if name in run.baselines])

    def label(self, run: Result) -> str:
        """The name of one of the runs."""
        return f"{self.name}, seed {run.seed}" if len(self.runs) > 1 else self.name


def places(settings: Iterable[Setting]) -> dict[Place, list[Setting]]:
    """Data set and backbone → its settings, in order of appearance."""
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
