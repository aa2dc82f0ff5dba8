"""A suite that several processes share: each takes what nobody has taken, and keeps what it finds for the audit."""

import time
from collections.abc import Callable, Iterable, Iterator

from attcem.assess.finished import Finished
from attcem.attacks import Attack
from attcem.cores import cores
from attcem.locks import held
from attcem.progress import say
from attcem.types import View

PATIENCE = 0.5
"""Seconds between two looks at what other processes have finished."""


def next_to(suite: dict[str, Attack], name: str) -> list[str]:
    """The attacks that go on with what this one finds."""
    return [other for other, attack in suite.items() if other != name and attack.builds_on == suite[name]]


def following(suite: dict[str, Attack], name: str, take: Callable[[Iterable[float]], float]) -> float:
    """The effort of an attack and of those that wait for it: of all (sum), or of the longest row of them (max)."""
    return suite[name].effort + take([0.0, *(following(suite, other, take) for other in next_to(suite, name))])


def jobs_worth(suite: dict[str, Attack]) -> int:
    """How many processes a suite keeps busy: more do not help who waits for its longest row; at most one a core."""
    longest = max(following(suite, name, max) for name in suite)
    return max(1, min(cores(), int(sum(attack.effort for attack in suite.values()) / longest)))


def take_part(
    suite: dict[str, Attack], view: View, kept: Finished, *, seed: int, processes: int = 1, progress: bool = True
) -> None:
    """Do what no other process has taken, one attack after the other, until nothing is left to take or to wait for."""
    started, paid = time.perf_counter(), 0.0
    for name in to_do(suite, view, kept, seed):
        say(f"attack {name}", shown=progress)
        began = time.perf_counter()
        kept.keep(name, suite[name], suite[name](view, seed=seed, progress=progress))
        paid += suite[name].effort
        now, missing = time.perf_counter(), [one for other, one in suite.items() if not kept.find(other, one)]
        left = (now - started) * sum(one.effort for one in missing) / paid / processes / 60
        done = f"{len(suite) - len(missing)} of {len(suite)} done, about {left:.0f} min left"
        say(f"{name}: finished after {now - began:.0f} s; {done}", shown=progress)


def to_do(suite: dict[str, Attack], view: View, kept: Finished, seed: int) -> Iterator[str]:
    """Attacks for this process, each held until the next is asked for; first those for which most effort waits.

    An attack that builds on another of the suite waits until that is finished, by whomever. One that a process died in
    is left to the audit, as is what waits for it: it might take this process down, too.
    """
    assert kept.folder is not None, "processes meet in a folder"
    missing, elsewhere = sorted(suite, key=lambda name: -following(suite, name, sum)), set[str]()
    while missing:
        others_at_work = False
        for name in [name for name in missing if not any(name in next_to(suite, other) for other in missing)]:
            with held(kept.folder / f"{name}.lock") as free:
                if not free:
                    elsewhere.add(name)
                    others_at_work = True
                    continue
                found = kept.find(name, suite[name])
                if found is not None:
                    suite[name].recall(view, found, seed=seed)
                elif name in elsewhere:
                    continue
                else:
                    yield name
            missing.remove(name)
            break
        else:
            if not others_at_work:
                return
            time.sleep(PATIENCE)
