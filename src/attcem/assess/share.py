"""A suite that several processes share: each takes what nobody has taken, and keeps what it finds for the audit."""

from __future__ import annotations

import time
from collections.abc import Iterator

from attcem.assess.finished import Finished
from attcem.attacks import Attack
from attcem.cores import cores
from attcem.locks import held
from attcem.progress import say
from attcem.types import View

PATIENCE = 0.5
"""Seconds between two looks at what other processes have finished."""


def effort(attacks: dict[str, Attack]) -> float:
    """What they cost."""
    return sum(attack.effort for attack in attacks.values())


def next_to(suite: dict[str, Attack], name: str) -> list[str]:
    """The attacks that go on with what this one finds."""
    return [other for other, attack in suite.items() if other != name and attack.builds_on == suite[name]]


def following(suite: dict[str, Attack], name: str) -> float:
    """The effort of an attack and of all that wait for it."""
    return suite[name].effort + sum(following(suite, other) for other in next_to(suite, name))


def chain(suite: dict[str, Attack], name: str) -> float:
    """The effort of an attack and of the longest row of attacks behind it, each of which waits for the one before."""
    return suite[name].effort + max((chain(suite, other) for other in next_to(suite, name)), default=0.0)


def jobs_worth(suite: dict[str, Attack]) -> int:
    """How many processes a suite keeps busy: more do not help who waits for its longest row; at most one a core."""
    return max(1, min(cores(), int(effort(suite) / max(chain(suite, name) for name in suite))))


def take_part(
    suite: dict[str, Attack], view: View, kept: Finished, *, seed: int, processes: int = 1, progress: bool = True
) -> None:
    """Do what no other process has taken, one attack after the other, until nothing is left to take or to wait for."""
    started, mine = time.perf_counter(), dict[str, Attack]()
    for name in to_do(suite, view, kept, seed):
        say(f"attack {name}", shown=progress)
        began = time.perf_counter()
        kept.keep(name, suite[name], suite[name](view, seed=seed, progress=progress))
        mine[name] = suite[name]
        now, missing = time.perf_counter(), kept.missing(suite)
        left = (now - started) * effort(missing) / effort(mine) / processes / 60
        done = f"{len(suite) - len(missing)} of {len(suite)} done, about {left:.0f} min left"
        say(f"{name}: finished after {now - began:.0f} s; {done}", shown=progress)


def to_do(suite: dict[str, Attack], view: View, kept: Finished, seed: int) -> Iterator[str]:
    """Attacks for this process, each held until the next is asked for; first those for which most effort waits.

    An attack that builds on another of the suite waits until that is finished, by whomever. One that a process died in
    is left to the audit, as is what waits for it: it might take this process down, too.
    """
    assert kept.folder is not None, "processes meet in a folder"
    missing, elsewhere = sorted(suite, key=lambda name: -following(suite, name)), set[str]()
    while missing:
        others_at_work = False
        for name in [name for name in missing if not any(name in next_to(suite, other) for other in missing)]:
            with held(kept.folder / f"{name}.lock") as free:
                if not free:
                    elsewhere.add(name)
                    others_at_work = True
                    continue
                found = kept.find(name, suite[name])
                if found is None and name in elsewhere:
                    continue
                if found is None:
                    yield name
                else:
                    suite[name].recall(view, found, seed=seed)
            missing.remove(name)
            break
        else:
            if not others_at_work:
                return
            time.sleep(PATIENCE)
