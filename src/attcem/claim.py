"""Whose a run's folder is: nothing of others is overwritten, and a run that never got going leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml

from attcem.config import Experiment
from attcem.files import write_atomically

SETTINGS = "config.yaml"
STATE = "checkpoint/state.json"
RESULT = "result.json"
AT_FIRST = (SETTINGS, "history.csv", "checkpoint/epoch-0001.safetensors")
"""What a run may have written before its first checkpoint stands."""
OURS = (*AT_FIRST, STATE, "audit", "images", "diagnostics.npz", RESULT)


def claim(folder: Path, experiment: Experiment, resume: bool) -> None:
    """Raise where a run would overwrite what lies there, or continue a run of other settings."""
    if not (folder / SETTINGS).exists():
        for name in OURS:
            if (folder / name).exists():
                raise ValueError(f"{folder} holds no run, but a {name} that one would overwrite: choose another --out")
        return
    begun = (folder / STATE).exists() or (folder / RESULT).exists()
    if begun and not resume:
        raise ValueError(f"{folder} already holds a run: add --resume to continue it, or --out for another folder")
    if not same_settings(folder / SETTINGS, experiment):
        raise ValueError(f"{folder} holds a run of other settings (see its {SETTINGS}): choose another --out")


def same_settings(path: Path, experiment: Experiment) -> bool:
    """Whether a file says what an experiment says, in whatever words; where it is done does not matter."""
    from attcem.configfile import as_arguments, parse_experiment

    written, mine = [str(path)], as_arguments(experiment.to_dict())
    one, other = (parse_experiment(said, own_guard=True).on("auto") for said in (written, mine))
    return one == other


@contextmanager
def settled_in(folder: Path, experiment: Experiment) -> Iterator[None]:
    """Write a run's settings; a run that then fails before its first checkpoint takes back all that it wrote."""
    path = folder / SETTINGS
    new = not path.exists()
    if new:
        write_atomically(path, settings_text(experiment).encode())
    try:
        yield
    except Exception:
        if new and not (folder / STATE).exists():
            for name in AT_FIRST:
                (folder / name).unlink(missing_ok=True)
            with suppress(OSError):
                (folder / "checkpoint").rmdir()
        raise


def settings_text(experiment: Experiment) -> str:
    """The content of a run's config.yaml."""
    return yaml.safe_dump(experiment.to_dict(), sort_keys=False, allow_unicode=True)
