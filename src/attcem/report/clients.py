"""The table of clients of a run that several trained together: what each photographs, and what leaks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attcem.report.charts import Grid
from attcem.runs.numbers import MISSING, count, decibel, is_number, percent, ratio, small
from attcem.types import Result

NAMED = 3
"""So many of a client's classes are named, the largest first."""

Client = Mapping[str, Any]


def recovered(client: Client) -> float | None:
    """1 − MSE / MSE of the mean image, at least 0, both on the client's own mix of classes."""
    mse, free = client["worst"].get("mse"), client["mean_image_mse"]
    return max(0.0, 1 - mse / free) if is_number(mse) and is_number(free) and free > 0 else None


def largest_classes(client: Client) -> str:
    """The classes it has most of, with their shares."""
    largest = sorted(client["classes"].items(), key=lambda item: -item[1])[:NAMED]
    images = client["images"] or float("nan")
    return ", ".join(f"{name} {percent(owned / images)}" for name, owned in largest) or MISSING


COLUMNS: Mapping[str, Callable[[Client], str]] = {
    "client": lambda client: f"client {client['client']}",
    "mostly": largest_classes,
    "images": lambda client: count(client["images"]),
    "accuracy": lambda client: ratio(client["accuracy"]),
    "MSE": lambda client: small(client["worst"].get("mse")),
    "mean image": lambda client: small(client["mean_image_mse"]),
    "recovered share": lambda client: percent(recovered(client)),
    "PSNR": lambda client: decibel(client["worst"].get("psnr")),
    "SSIM": lambda client: ratio(client["worst"].get("ssim")),
    "recon_acc": lambda client: ratio(client["worst"].get("recon_acc")),
    "reid_top1": lambda client: ratio(client["worst"].get("reid_top1")),
    "classes attacked": lambda client: percent(client["covered"]),
}


def client_table(run: Result) -> Grid:
    """One line per client, in their order."""
    lines = [[show(client) for show in COLUMNS.values()] for client in run.clients]
    return Grid(list(COLUMNS), lines, words=2)
