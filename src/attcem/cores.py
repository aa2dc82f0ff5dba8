"""The processor's cores, shared out among processes so that their threads do not fight, and how a process ended."""

import os
import signal

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def sharing(processes: int) -> dict[str, str]:
    """The environment for each of so many processes: its share of the cores, at least one."""
    return dict(os.environ) | dict.fromkeys(THREADS, str(max(1, cores() // processes)))


def ending(code: int) -> str:
    """How a process ended, in words.

    >>> ending(-9)
    'was killed (SIGKILL: perhaps out of memory)'
    """
    if code >= 0:
        return f"ended with code {code}"
    name = signal.Signals(-code).name
    return f"was killed ({name}{': perhaps out of memory' if name == 'SIGKILL' else ''})"
