"""`attcem list`: every name that a configuration may use, with one sentence each."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import getdoc
from pathlib import Path

from attcem.configfile import UsageError
from attcem.naming import nearest
from attcem.reading.plain import open_plain
from attcem.reading.settings import LIMIT


def table(room: str, name: str) -> dict[str, str]:
    """The entries of a room's table, each with what it says of itself, or the first line of its documentation."""
    entries = getattr(import_module(f"attcem.{room}"), name).items()
    return {key: getattr(entry, "about", None) or (getdoc(entry) or "").partition("\n")[0] for key, entry in entries}


def yaml_paths() -> dict[str, Path]:
    """Name → file of the presets in the package, or in the checkout it runs from."""
    here = Path(__file__).parent
    folder = here / "presets" if (here / "presets").exists() else here.parents[1] / "experiments"
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def is_sweep(path: Path) -> bool:
    with open_plain(path) as file:
        return re.search(rb"^(runs|grid):", file.read(LIMIT), re.MULTILINE) is not None


def preset_paths() -> dict[str, Path]:
    return {name: path for name, path in yaml_paths().items() if not is_sweep(path)}


def sweep_paths() -> dict[str, Path]:
    return {name: path for name, path in yaml_paths().items() if is_sweep(path)}


def find_file(name: str, presets: Mapping[str, Path], offered: Mapping[str, Path] | None = None) -> Path:
    """The file of that name, or the preset's; a name that is neither is told those that are offered, or all."""
    path = Path(name)
    if path.exists() and not (path.is_dir() and name in presets):
        return path
    if name not in presets:
        raise UsageError(f"{name} is no file and no preset: {nearest(Path(name).stem, offered or presets)}")
    return presets[name]


def first_lines(paths: Mapping[str, Path]) -> dict[str, str]:
    return {name: path.read_text().partition("\n")[0].lstrip("# ") for name, path in paths.items()}


LISTS: Mapping[str, Callable[[], dict[str, str]]] = {
    "defences": partial(table, "defences", "DEFENCES"),
    "attacks": partial(table, "attacks", "ATTACKS"),
    "data": partial(table, "data", "DATASETS"),
    "backbones": partial(table, "models", "BACKBONES"),
    "crossings": partial(table, "models", "CROSSINGS"),
    "recipes": partial(table, "train", "RECIPES"),
    "suites": lambda: {
        name: f"{suite.version}: {', '.join(suite.attacks)}"
        for name, suite in import_module("attcem.attacks").SUITES.items()
    },
    "presets": lambda: first_lines(preset_paths()),
    "sweeps": lambda: first_lines(sweep_paths()),
}
