"""How often a device may send: each picture, what looks like it, and in total; kept across restarts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from attcem.files import replacing, write_atomically
from attcem.locks import held
from attcem.reading.arrays import read_arrays
from attcem.reading.plain import MEGABYTE, read_content
from attcem.ship.likeness import NEAR, distances, exact_fingerprint, near_fingerprint
from attcem.types import Result

MOST_SENDS = 16  # of one picture: what every suite from `quick` on averages over
TOTAL = 100_000
SECRET, LEDGER, LOCK = "secret", "sends.npz", "lock"
LIMIT = 512 * MEGABYTE
COLUMNS = {"exact": (np.uint8, (32,)), "near": (np.uint8, (32,)), "sends": (np.int64, ()), "nats": (np.float64, ())}


class OverBudget(ValueError):
    """A send that was refused; nothing left the device."""


@dataclass(frozen=True)
class Budget:
    """How many sends are allowed, and how many nats of one picture and its near-duplicates by the rate bound."""

    picture: int = MOST_SENDS
    lookalikes: int = MOST_SENDS  # of a picture and its near-duplicates together
    total: int = TOTAL
    nats: float | None = None  # not limited, beyond what the sends allow

    def __post_init__(self) -> None:
        for name in ("picture", "lookalikes", "total"):
            if getattr(self, name) < 1:
                raise ValueError(f"a budget of {getattr(self, name)} sends ({name}) allows none: give at least 1")
        if self.nats is not None and not self.nats > 0:
            raise ValueError(f"a budget of {self.nats} nats allows no send: give more than 0")


def attacked_sends(audit: Result) -> int:
    """The most sends of one picture that an attack of the audit averaged over: beyond it, nobody has measured."""
    measured = [int(times) for times in audit.curves.get("repeats", {}) if times.isdigit()]
    return max(1, *measured) if measured else 1


def audited_budget(audit: Result) -> Budget:
    """As many sends of one picture as the audit attacked, and no more than 16."""
    sends = min(MOST_SENDS, attacked_sends(audit))
    return Budget(picture=sends, lookalikes=sends)


@dataclass(frozen=True)
class Ledger:
    """The sends so far, in a folder that all processes of this device share; it tells nothing of the pictures."""

    folder: Path

    def spend(self, picture: np.ndarray, budget: Budget, nats: float | None) -> None:
        """Count one more send of a picture before it is made, or raise OverBudget."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(self.folder / LOCK, wait=True):
            secret, rows = self._read()
            exact, near = exact_fingerprint(picture, secret), near_fingerprint(picture, secret)
            same = (rows["exact"] == np.frombuffer(exact, np.uint8)).all(1)
            alike = same | (distances(near, rows["near"]) <= NEAR)
            check(rows, same, alike, budget, nats)
            if not same.any():
                new = {"exact": np.frombuffer(exact, np.uint8), "near": np.frombuffer(near, np.uint8)}
                rows = {name: np.append(rows[name], [new.get(name, 0)], axis=0) for name in COLUMNS}
                same = np.append(same, True)
            rows["sends"] = rows["sends"] + same
            rows["nats"] = rows["nats"] + same * (nats or 0.0)
            self._write(rows)

    def _read(self) -> tuple[bytes, dict[str, np.ndarray]]:
        kept = [(self.folder / name).exists() for name in (SECRET, LEDGER)]
        if not any(kept):
            write_atomically(self.folder / SECRET, os.urandom(32))
            (self.folder / SECRET).chmod(0o600)
            self._write({name: np.empty((0, *shape), dtype) for name, (dtype, shape) in COLUMNS.items()})
        elif not all(kept):
            missing = LEDGER if kept[0] else SECRET
            raise ValueError(f"{self.folder} lacks {missing}, so nobody knows what was sent: {START_ANEW}")
        secret, rows = read_content(self.folder / SECRET, 32), read_arrays(self.folder / LEDGER, LIMIT)
        if len(secret) != 32 or not is_ledger(rows):
            raise ValueError(f"{self.folder} is damaged, so nobody knows what was sent: {START_ANEW}")
        return secret, rows

    def _write(self, rows: dict[str, np.ndarray]) -> None:
        with replacing(self.folder / LEDGER) as file:
            np.savez(file, **rows)  # type: ignore[arg-type]


START_ANEW = "restore it, or remove the folder, which forgets every send"


def is_ledger(rows: dict[str, np.ndarray]) -> bool:
    """Whether these are the columns of a ledger, all equally long and nothing negative."""
    if set(rows) != set(COLUMNS) or len({len(column) for column in rows.values() if column.ndim}) != 1:
        return False
    right = (rows[name].dtype == dtype and rows[name].shape[1:] == shape for name, (dtype, shape) in COLUMNS.items())
    return all(right) and bool((rows["sends"] >= 0).all() and (rows["nats"] >= 0).all())


def check(rows: dict[str, np.ndarray], same: np.ndarray, alike: np.ndarray, budget: Budget, nats: float | None) -> None:
    """Raise OverBudget where one more send is too many; the message says which budget it would exceed."""
    sends, told = rows["sends"], float(rows["nats"][alike].sum())
    limits = [
        (sends[same].sum(), budget.picture, "this picture", "--per-picture"),
        (sends[alike].sum(), budget.lookalikes, "this picture and its near-duplicates", "--per-lookalike"),
        (sends.sum(), budget.total, "all pictures together", "--total"),
    ]
    for spent, most, what, option in limits:
        if spent + 1 > most:
            raise OverBudget(
                f"{spent} sends of {what} were made, and the budget is {most}: nothing was sent. Averages over more "
                f"sends leak more; if an audit allows it (`repeats` in its curves), raise {option}"
            )
    if budget.nats is None:
        return
    if nats is None:
        raise OverBudget("no rate bound holds for this artifact, so nats cannot be counted: budget sends instead")
    if told + nats > budget.nats:
        raise OverBudget(
            f"this picture and its near-duplicates have told up to {told:.4g} nats, a send tells up to {nats:.4g}, and "
            f"the budget is {budget.nats:g}: nothing was sent. Raise --nats, or use an artifact with a lower rate"
        )
