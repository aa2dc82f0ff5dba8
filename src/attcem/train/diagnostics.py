"""What training tells of every epoch: what defences saw in a few steps, averaged, and a row of the history."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from attcem.escaping import as_csv
from attcem.files import write_atomically

EVERY = 16  # one step in so many is looked at closely, so that looking costs next to nothing


class Diagnostics:
    """Collects readings of an epoch: numbers, and vectors of a fixed length."""

    def __init__(self) -> None:
        self.taken: dict[str, list[Tensor]] = defaultdict(list)

    @staticmethod
    def due(step: int) -> bool:
        return step % EVERY == 0

    def take(self, readings: Mapping[str, Tensor]) -> None:
        for name, value in readings.items():
            self.taken[name].append(value.detach())

    def close(self) -> tuple[dict[str, float], dict[str, list[float]]]:
        """The epoch's means: of numbers, for the history, and of vectors; then begin anew."""
        means = {name: torch.stack(values).double().mean(0) for name, values in self.taken.items()}
        self.taken.clear()
        numbers = {name: mean.item() for name, mean in means.items() if mean.ndim == 0}
        return numbers, {name: mean.tolist() for name, mean in means.items() if mean.ndim == 1}


def close_together(everyone: Iterable[Diagnostics]) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The epoch's means, averaged over those who took part."""
    together = Diagnostics()
    for one in everyone:
        for found in one.close():
            together.take({name: torch.tensor(value, dtype=torch.float64) for name, value in found.items()})
    return together.close()


def gradient_readings(task: Tensor, penalty: Tensor) -> dict[str, Tensor]:
    """How hard task and weighted penalty pull at the latent, and whether they pull the same way."""
    strength, pull = task.norm(), penalty.norm()
    cosine = (task * penalty).sum() / (strength * pull).clamp_min(torch.finfo(task.dtype).tiny)
    return {"task_gradient": strength, "penalty_gradient": pull, "gradient_cosine": cosine}


class History:
    """Writes the rows of a run, one for every epoch, to history.csv, and to TensorBoard where asked for."""

    def __init__(self, folder: Path | None, *, tensorboard: bool = False) -> None:
        self.folder = folder
        self.writer: Any = None
        if tensorboard:
            if folder is None:
                raise ValueError("tensorboard needs a folder to write to: give `out`")
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError:
                raise ValueError("tensorboard is not installed: pip install 'attcem[tensorboard]'") from None
            self.writer = SummaryWriter(str(folder / "tensorboard"))

    def write(self, rows: list[dict[str, float]]) -> None:
        """The whole table, and the last row to TensorBoard."""
        if self.folder is not None:
            write_atomically(self.folder / "history.csv", as_csv(rows).encode())
        if self.writer is not None:
            for name, value in rows[-1].items():
                self.writer.add_scalar(name, value, int(rows[-1]["epoch"]))
            self.writer.flush()

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()


def epoch_row(epoch: int, lr: float, total: Mapping[str, float], steps: int, seconds: float) -> dict[str, float]:
    """Means over an epoch's images and the steps that were taken, from what all its steps saw together."""
    if total["skipped"] == steps:
        raise ValueError(
            f"every batch of epoch {epoch} gave a loss or gradient that is not finite: lower train.lr, use "
            "precision float32, or check the defence's penalty; the last checkpoint is intact"
        )
    return {
        "epoch": epoch,
        "lr": lr,
        "loss": total["loss"] / total["seen"],
        "accuracy": total["correct"] / total["seen"],
        "penalty": total["penalty"] / (steps - total["skipped"]),
        "skipped": total["skipped"],
        "lost_penalties": total["lost_penalties"],
        "penalty_share": total["in_penalty"] / seconds,
        "seconds": seconds,
        "images_per_second": total["seen"] / seconds,
    }


def in_words(row: dict[str, float], epochs: int) -> str:
    left = (epochs - row["epoch"]) * row["seconds"]
    return (
        f"epoch {row['epoch']:.0f}/{epochs}  loss {row['loss']:.3f}  accuracy {row['accuracy']:.3f}  "
        f"validation {row['val_accuracy']:.3f}  penalty {row['penalty']:.4g}  "
        f"{row['images_per_second']:,.0f} images/s  {left:.0f} s left"
        + (f"  {row['skipped']:.0f} batches skipped: not finite" if row["skipped"] else "")
    )


def cost(rows: list[dict[str, float]], steps: int) -> dict[str, float]:
    seconds = sum(row["seconds"] for row in rows)
    return {
        "train_s": seconds,
        "step_ms": 1000 * seconds / steps,
        "surrogate_share": sum(row["penalty_share"] for row in rows) / len(rows),
        "skipped_batches": sum(row["skipped"] for row in rows),
        "lost_penalties": sum(row["lost_penalties"] for row in rows),
    }
