"""A suite that several processes share: each takes what nobody has taken, and keeps what it finds for the audit."""

from __future__ import annotations

import fcntl
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from attcem.assess.finished import Finished
from attcem.attacks import Attack
from attcem.progress import say
from attcem.types import View


def groups(suite: dict[str, Attack]) -> list[dict[str, Attack]]:
    """Attacks that start from the same decoder are one group, so that it is trained once; the longest group first."""
    together: defaultdict[Attack, dict[str, Attack]] = defaultdict(dict)
    for name, attack in suite.items():
        together[attack.builds_on][name] = attack
    return sorted(together.values(), key=effort, reverse=True)


def effort(group: dict[str, Attack]) -> float:
    """What its attacks cost."""
    return sum(attack.effort for attack in group.values())


def take_part(
    suite: dict[str, Attack], view: View, kept: Finished, *, seed: int, processes: int = 1, progress: bool = True
) -> None:
    """Run the groups that no other process has taken, one after the other, until none is left."""
    assert kept.folder is not None, "processes meet in a folder"
    started, mine = time.perf_counter(), dict[str, Attack]()
    for group in groups(suite):
        with taken(kept.folder / f"{next(iter(group))}.lock") as free:
            for name, attack in group.items() if free else ():
                if (before := kept.find(name, attack)) is not None:
                    attack.recall(view, before, seed=seed)
                    continue
                say(f"attack {name}", shown=progress)
                began = time.perf_counter()
                kept.keep(name, attack, attack(view, seed=seed, progress=progress))
                mine[name] = attack
                now, missing = time.perf_counter(), kept.missing(suite)
                left = (now - started) * effort(missing) / effort(mine) / processes / 60
                done = f"{len(suite) - len(missing)} of {len(suite)} done, about {left:.0f} min left"
                say(f"{name}: finished after {now - began:.0f} s; {done}", shown=progress)


@contextmanager
def taken(path: Path) -> Iterator[bool]:
    """Whether this process is the one that holds a file; the kernel lets go of it when the process ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
