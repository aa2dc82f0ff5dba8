"""Settings: runs that differ only in their seed, with a name a reader understands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attcem.links import read_links
from attcem.report.numbers import is_number, mean
from attcem.types import Result, Scores

SYMBOLS = {"sigma": "σ", "lam": "λ", "epsilon": "ε", "eps": "ε", "delta": "δ", "gamma": "γ"}
STRENGTHS = ("sigma", "lam", "epsilon", "eps", "ratio", "rate")
"""Options that say how strong a defence is: a name always tells them."""


def section(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """One part of a config as a dict, whatever was written there."""
    value = config.get(name)
    if isinstance(value, Mapping):
        return dict(value)
    return {} if value is None else {"name": value}


def defences(config: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Name of a link → its options; empty for no defence."""
    return {link.name: link.options for link in read_links(config.get("defence"))}


def defence_name(config: Mapping[str, Any], told: Callable[[str, str], bool] = lambda name, key: True) -> str:
    """The defence in a few words, "noise σ=0.1 + bound assign=slot λ=16" or "none", with the options that are told."""
    words = [
        [name, *(_option(key, value) for key, value in options.items() if value is not None and told(name, key))]
        for name, options in defences(config).items()
    ]
    return " + ".join(map(" ".join, words)) or "none"


def _option(key: str, value: Any) -> str:
    return f"{SYMBOLS.get(key, key)}={_short(value)}"


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """Nested config → dotted key → value, each link under its name; seeds and the experiment's name left out."""
    return _flat({**config, "defence": defences(config)})


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if key == "seed" or f"{prefix}{key}" == "name":
            continue
        inner = _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {}
        flat |= inner or {f"{prefix}{key}": value}
    return flat


def asked(run: Result) -> dict[str, Any]:
    """A run's config with its suite's version in the place of the suite's name: two versions are two settings."""
    audit = section(run.config, "audit") | ({"suite": run.suite} if run.suite else {})
    return run.config | ({"audit": audit} if audit else {})


def differences(config: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What else than defence and seed differs, as "key=ours instead of theirs"."""
    ours, theirs = flatten(config), flatten(other)
    keys = [key for key in ours | theirs if key.split(".")[0] != "defence" and ours.get(key) != theirs.get(key)]
    return [f"{key}={_short(ours.get(key))} instead of {_short(theirs.get(key))}" for key in keys]


def recovered_share(scores: Scores, run: Result) -> float:
    """1 − MSE / MSE of the mean image, at least 0: what an attack saw of all there is beyond the average picture."""
    average = run.baselines.get("mean_image")
    if average is None or not average.mse > 0 or not is_number(scores.mse):
        return float("nan")
    return max(0.0, 1 - scores.mse / average.mse)


@dataclass(frozen=True)
class Setting:
    """One or more runs of the same config, each with its own seed; numbers are means over the runs."""

    runs: tuple[Result, ...]
    name: str
    kin: str = ""
    """What it shares with the same defence at other strengths."""

    @property
    def config(self) -> dict[str, Any]:
        """The config that the runs share, but for the seed, with the version of their suite."""
        return asked(self.runs[0])

    @property
    def place(self) -> tuple[str, str]:
        """Data set and backbone: only runs in the same place are compared."""
        data, model = section(self.config, "data"), section(self.config, "model")
        return str(data.get("name", "data")), str(model.get("backbone", model.get("name", "model")))

    @property
    def suite(self) -> str:
        """The version of the suite that attacked it."""
        return str(section(self.config, "audit").get("suite", ""))

    @property
    def undefended(self) -> bool:
        """Whether nothing stands between encoder and cloud."""
        return not defences(self.config)

    @property
    def title(self) -> str:
        """Its name, where "none" alone would puzzle."""
        return "no defence" + self.name.removeprefix("none") if self.undefended else self.name

    @property
    def seeds(self) -> int:
        """How many different seeds were run."""
        return len({run.seed for run in self.runs})

    @property
    def accuracy(self) -> float:
        """Accuracy of the cloud half on real images."""
        return mean([run.accuracy for run in self.runs])

    @property
    def mse(self) -> float:
        """Worst-case MSE: the best attack per image."""
        return mean([run.worst.mse for run in self.runs])

    @property
    def ssim(self) -> float:
        """Worst-case SSIM: the best attack per image."""
        return mean([run.worst.ssim for run in self.runs])

    @property
    def attacks(self) -> int:
        """How many attacks count for the worst case."""
        return max(len(run.attacks) - len(run.repeated) for run in self.runs)

    @property
    def recovered(self) -> float:
        """Recovered share of the worst case."""
        return mean([recovered_share(run.worst, run) for run in self.runs])

    def baseline(self, name: str, metric: str = "mse") -> float:
        """What a baseline scores."""
        return mean([getattr(run.baselines[name], metric) for run in self.runs if name in run.baselines])

    def label(self, run: Result) -> str:
        """The name of one of the runs."""
        return f"{self.title}, seed {run.seed}" if len(self.runs) > 1 else self.title


def places(settings: Sequence[Setting]) -> dict[tuple[str, str], list[Setting]]:
    """Data set and backbone → its settings, in order of appearance."""
    found: dict[tuple[str, str], list[Setting]] = {}
    for setting in settings:
        found.setdefault(setting.place, []).append(setting)
    return found


def settings_of(results: Sequence[Result]) -> list[Setting]:
    """Group runs by config without seeds; undefended first, then in order of appearance."""
    groups: dict[str, list[Result]] = {}
    for run in results:
        groups.setdefault(json.dumps(flatten(asked(run)), sort_keys=True, default=str), []).append(run)
    settings = [_named_among([runs[0].config for runs in groups.values()], runs) for runs in groups.values()]
    return sorted((_told_apart(setting, settings) for setting in settings), key=lambda s: not s.undefended)


def _named_among(configs: Sequence[Mapping[str, Any]], runs: Sequence[Result]) -> Setting:
    """A name of strengths and of the options that tell this chain of defences from the same chain elsewhere."""
    own = defences(runs[0].config)
    twins = [chain for config in configs if list(chain := defences(config)) == list(own)]

    def varies(name: str, key: str) -> bool:
        values = [chain[name].get(key) for chain in twins]
        return any(value != values[0] for value in values)

    name = defence_name(runs[0].config, lambda link, key: key in STRENGTHS or varies(link, key))
    kin = defence_name(runs[0].config, lambda link, key: key not in STRENGTHS and varies(link, key))
    return Setting(tuple(sorted(runs, key=lambda run: run.seed)), name, kin)


def _told_apart(setting: Setting, settings: Iterable[Setting]) -> Setting:
    """Add to a name that several settings share what tells this one from the others."""
    namesakes = [s for s in settings if s is not setting and (s.name, s.place) == (setting.name, setting.place)]
    ours = flatten(setting.config)
    keys = {key for other in namesakes for key in ours if ours[key] != flatten(other.config).get(key)}
    telling = ", ".join(f"{key}={_short(ours[key])}" for key in ours if key in keys)
    return replace(setting, name=f"{setting.name} ({telling})") if telling else setting
