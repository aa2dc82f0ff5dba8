"""A run's folder: its name, its settings, and what must not be overwritten in it."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from attcem.config import Experiment
from attcem.configfile import as_arguments, parse_experiment
from attcem.files import write_atomically
from attcem.links import read_links

SETTINGS = "config.yaml"
STATE = "checkpoint/state.json"
RESULT = "result.json"
BEFORE_STATE = (SETTINGS, "history.csv", "checkpoint/epoch-0001.safetensors")
"""What a run may have written before its first checkpoint stands."""
FILES = (*BEFORE_STATE, STATE, "audit", "images", "diagnostics.npz", RESULT)


def run_folder(experiment: Experiment) -> str:
    """A readable name, the same for the same settings on any device: a second call finds the first one's work."""
    digest = hashlib.sha256(json.dumps(experiment.on("auto").to_dict(), sort_keys=True).encode()).hexdigest()[:8]
    chain = [link.name for link in read_links(experiment.defence)] or ["none"]
    parts = [experiment.data.name.split(":")[0], experiment.model.backbone, *chain]
    return f"{experiment.name or '-'.join(parts)}-s{experiment.seed}-{digest}"


def read_experiment(folder: str | Path) -> Experiment:
    """The experiment of a run; the error on a folder that holds runs, at most two levels down, names some of them."""
    folder = Path(folder)
    if (folder / SETTINGS).exists():
        return parse_experiment([str(folder / SETTINGS)])
    runs = [str(found.parent) for level in ("*", "*/*") for found in sorted(folder.glob(f"{level}/{SETTINGS}"))]
    more = f" and {len(runs) - 3} more" if len(runs) > 3 else ""
    named = f"it holds runs, so name one of them: {', '.join(runs[:3])}{more}"
    bare = f"it holds no {SETTINGS}" if folder.is_dir() else "there is no such folder"
    raise ValueError(f"{folder} is not a run: {named if runs else bare}")


def check_folder(folder: Path, experiment: Experiment, resume: bool) -> None:
    if not (folder / SETTINGS).exists():
        for name in FILES:
            if (folder / name).exists():
                raise ValueError(f"{folder} holds no run, but a {name} that one would overwrite: choose another --out")
        return
    begun = (folder / STATE).exists() or (folder / RESULT).exists()
    if begun and not resume:
        raise ValueError(f"{folder} already holds a run: add --resume to continue it, or --out for another folder")
    asked = parse_experiment(as_arguments(experiment.to_dict()))  # alike if they mean the same, however written
    if read_experiment(folder).on("auto") != asked.on("auto"):
        raise ValueError(f"{folder} holds a run of other settings (see its {SETTINGS}): choose another --out")


@contextmanager
def written_settings(folder: Path, experiment: Experiment) -> Iterator[None]:
    """Write a run's settings; a run that then fails before its first checkpoint removes all that it wrote."""
    path = folder / SETTINGS
    new = not path.exists()
    if new:
        write_atomically(path, settings_text(experiment).encode())
    try:
        yield
    except Exception:
        if new and not (folder / STATE).exists():
            for name in BEFORE_STATE:
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):
                (folder / "checkpoint").rmdir()
        raise


def settings_text(experiment: Experiment) -> str:
    return yaml.safe_dump(experiment.to_dict(), sort_keys=False, allow_unicode=True)
