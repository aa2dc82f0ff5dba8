"""What the package adds to a start: import and help."""

import statistics
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.harness import Figure, seconds


def run(*arguments: str) -> float:
    return seconds(lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True))


def figures() -> Iterator[Figure]:
    everything = "import torch, attcem; [getattr(attcem, name) for name in attcem.__all__]"
    rounds = [(run("-c", "import torch"), run("-c", everything), run("-m", "attcem", "--help")) for _ in range(7)]
    added = statistics.median(with_ours - without for without, with_ours, _ in rounds)
    yield Figure("startup: seconds that importing all public names adds to torch", added, 0.5, at_least=False)
    yield Figure("startup: seconds of attcem --help", statistics.median(r[2] for r in rounds), 1.0, at_least=False)
