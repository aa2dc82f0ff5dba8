"""A row per epoch: kept in memory, in history.csv, and in TensorBoard where asked for."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attcem.escaping import as_csv
from attcem.files import write_atomically


class History:
    """Collects the rows of a run and writes them where the run lives."""

    def __init__(self, folder: Path | None, *, tensorboard: bool = False) -> None:
        self.rows: list[dict[str, float]] = []
        self.folder = folder
        self.writer = open_tensorboard(folder) if tensorboard else None

    def add(self, row: dict[str, float]) -> None:
        self.rows.append(row)
        if self.folder is not None:
            write_atomically(self.folder / "history.csv", as_csv(self.rows).encode())
        if self.writer is not None:
            for name, value in row.items():
                self.writer.add_scalar(name, value, int(row["epoch"]))
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


def open_tensorboard(folder: Path | None) -> Any:
    if folder is None:
        raise ValueError("tensorboard needs a folder to write to: give `out`")
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ValueError("tensorboard is not installed: pip install 'attcem[tensorboard]'") from None
    return SummaryWriter(str(folder / "tensorboard"))
