"""Runs that have no result yet: how far they are, as their own files tell."""

from __future__ import annotations

import csv
import time
from pathlib import Path
from typing import Any

from attcem.reading.content import MEGABYTE, read_content
from attcem.reading.settings import read_yaml
from attcem.runs.numbers import is_number

CONFIG, HISTORY = "config.yaml", "history.csv"


def how_far(folder: Path) -> str:
    """How far a run without a result is, in words; a ValueError or OSError if its files cannot be read."""
    train = read_yaml(folder / CONFIG).get("train")
    epochs = train.get("epochs") if isinstance(train, dict) else None
    of_all = f" of {epochs}" if isinstance(epochs, int) else ""
    history = folder / HISTORY
    last = last_row(history) if history.exists() else {}
    if not last:
        return f"running: first epoch{of_all}"
    epoch, validation = number(last, "epoch"), number(last, "val_accuracy")
    text = (f"epoch {epoch:.10g}" if is_number(epoch) else "an epoch done") + of_all
    if is_number(validation) and 0 <= validation <= 1:
        text += f", validation {validation:.3f}".replace(" 0.", " .")
    written = time.strftime("%H:%M", time.localtime(history.stat().st_mtime))
    trained = is_number(epoch) and epoch == epochs
    return f"trained, no result yet: {text} at {written}" if trained else f"running: {text} at {written}"


def last_row(history: Path) -> dict[str, Any]:
    """The newest epoch; nothing while there is none."""
    try:
        return [{}, *csv.DictReader(read_content(history, 64 * MEGABYTE).decode().splitlines())][-1]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{history} is damaged ({error})") from None


def number(row: dict[str, Any], name: str) -> float | None:
    """One figure of an epoch, if it is there and is a number."""
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
