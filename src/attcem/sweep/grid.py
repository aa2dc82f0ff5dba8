"""A sweep's file becomes runs: a base, variants and a grid of dotted keys, times seeds; all checked before any work."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from attcem.config import Experiment
from attcem.configfile import UsageError, as_arguments, parse_experiment, read_yaml
from attcem.experiment import run_folder
from attcem.links import flattened
from attcem.naming import nearest
from attcem.parts import make_guard

KEYS = ("base", "runs", "grid", "seeds", "quick")


class Run(NamedTuple):
    """One run of a sweep: its folder's name, its settings, and what tells it from the others in words."""

    name: str
    experiment: Experiment
    label: str = ""


def read_sweep(
    path: Path,
    presets: Mapping[str, Path],
    *,
    seeds: Sequence[int] | None = None,
    overrides: Sequence[str] = (),
    device: str | None = None,
    quick: bool = False,
) -> list[Run]:
    """The runs that a file describes, in order, on `device` if given; `overrides` are `--key value` for the base.

    In its `quick` form the file's own shortcuts apply to all of them, and the first seed alone.
    """
    sweep = read_yaml(path)
    for key in sweep:
        if key not in KEYS:
            raise UsageError(f"{path}: unknown key '{key}': {nearest(str(key), KEYS)}")
    shortcuts = quick_arguments(sweep.get("quick"), path) if quick else []
    base = [*base_arguments(sweep.get("base"), path, presets), *shortcuts, *overrides]
    given = checked_seeds(sweep.get("seeds"), path)
    seeds = (given[:1] if quick else given) if seeds is None else checked_seeds(seeds, path)
    runs: dict[str, Run] = {}
    every = list(combinations(sweep, path))
    for settings, label in zip(every, labels(every), strict=True):
        try:
            experiment = parse_experiment([*base, *as_arguments(settings)]).on(device)
            make_guard(experiment)
        except UsageError as error:
            said = ", ".join(f"{key}={value}" for key, value in settings.items())
            raise UsageError(f"{path}{': ' + said if said else ''}: {error}") from None
        for seed in seeds or [experiment.seed]:
            experiment = replace(experiment, seed=seed)
            name, unnamed = run_folder(experiment), run_folder(replace(experiment, name=None))
            if unnamed in runs:
                raise UsageError(f"{path}: two runs have the same settings: {runs[unnamed].name} and {name}")
            runs[unnamed] = Run(name, experiment, f"{label}, seed {seed}")
    return list(runs.values())


def base_arguments(base: Any, path: Path, presets: Mapping[str, Path]) -> list[str]:
    """What every run starts from: a preset's name, a file beside the sweep's, settings in place, or the defaults."""
    if base is None:
        return []
    if isinstance(base, Mapping):
        return as_arguments(flattened(base))
    if isinstance(base, str):
        for known in (presets.get(base), path.parent / base, Path(base)):
            if known is not None and known.is_file():
                return [str(known)]
        raise UsageError(f"{path}: base {base!r} is no file and no preset: {nearest(base, presets)}")
    raise UsageError(f"{path}: base cannot be {base!r}: name a preset or a file, or give settings")


def quick_arguments(quick: Any, path: Path) -> list[str]:
    """The settings that make every run short."""
    if not isinstance(quick, Mapping) or not quick:
        raise UsageError(f"{path} has no quick form: give it one, as in quick: {{train.epochs: 2, audit.suite: demo}}")
    return as_arguments(flattened(quick))


def checked_seeds(seeds: Any, path: Path) -> list[int]:
    if seeds is None:
        return []
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UsageError(f"{path}: seeds cannot be {seeds!r}: give a list of numbers, as in [0, 1, 2]")
    for seed in seeds:
        if seeds.count(seed) > 1:
            raise UsageError(f"{path}: seed {seed} is named twice")
    return seeds


def combinations(sweep: Mapping[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """Every variant of `runs` with every point of `grid`, as dotted key → value."""
    variants, grid = sweep.get("runs", [{}]), sweep.get("grid", {})
    if not isinstance(variants, list) or not variants or not all(isinstance(v, Mapping) for v in variants):
        raise UsageError(f"{path}: runs must be a list of settings, as in [{{}}, {{defence.noise.sigma: [0.1, 0.3]}}]")
    if not isinstance(grid, Mapping):
        raise UsageError(f"{path}: grid must map keys to lists of values, as in {{model.width: [0.25, 0.5]}}")
    for variant in variants:
        yield from points(flattened(variant) | flattened(grid), path)


def points(settings: Mapping[str, Any], path: Path) -> Iterator[dict[str, Any]]:
    """The product of all lists; what is no list is the only value.

    >>> list(points({"seed": 1, "train.lr": [0.1, 0.2]}, Path("a.yaml")))
    [{'seed': 1, 'train.lr': 0.1}, {'seed': 1, 'train.lr': 0.2}]
    """
    for key, values in settings.items():
        if values == []:
            raise UsageError(f"{path}: {key} has no values: give some, or leave it out")
    choices = [values if isinstance(values, list) else [values] for values in settings.values()]
    yield from (dict(zip(settings, chosen, strict=True)) for chosen in itertools.product(*choices))


def labels(every: Sequence[Mapping[str, Any]]) -> list[str]:
    """In words, what tells each point from the others: the keys that not all of them share.

    >>> labels([{"train.epochs": 3}, {"train.epochs": 3, "defence.noise.sigma": 0.1}])
    ['as the base', 'defence.noise.sigma=0.1']
    """
    shared = [item for item in every[0].items() if all(item in settings.items() for settings in every)]
    return [
        ", ".join(f"{key}={value}" for key, value in settings.items() if (key, value) not in shared) or "as the base"
        for settings in every
    ]
