"""The table of clients of a run that several trained together: what each photographs, and what leaks of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from attcem.report.numbers import MISSING, count, decibel, is_number, percent, ratio, small
from attcem.types import Result

NAMED = 3
"""So many of a client's classes are named, the largest first."""

Client = Mapping[str, Any]


def recovered(client: Client) -> float | None:
    """1 − MSE / MSE of the mean image, at least 0, both on the client's own mix of classes."""
    mse, free = client["worst"].get("mse"), client["mean_image_mse"]
    return max(0.0, 1 - mse / free) if is_number(mse) and is_number(free) and free > 0 else None


COLUMNS: Mapping[str, Callable[[Client], str]] = {
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


@dataclass(frozen=True)
class ClientRow:
    """One client, ready to print."""

    name: str
    mostly: str
    cells: list[str]


def client_table(run: Result) -> list[ClientRow]:
    """One row per client, in their order."""
    return [
        ClientRow(f"client {client['client']}", mostly(client), [show(client) for show in COLUMNS.values()])
        for client in run.clients
    ]


def mostly(client: Client) -> str:
    """The classes it has most of, with their shares."""
    largest = sorted(client["classes"].items(), key=lambda item: -item[1])[:NAMED]
    images = client["images"] or float("nan")
    return ", ".join(f"{name} {percent(owned / images)}" for name, owned in largest) or MISSING
