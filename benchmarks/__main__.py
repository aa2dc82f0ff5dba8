"""Run every benchmark, print its figures, and fail if a goal is missed."""

import sys

from benchmarks import attack, crossings, defences, distributed, loader, memory, startup, surrogates, sweep

found = []
for benchmark in (loader, startup, surrogates, crossings, defences, memory, attack, distributed, sweep):
    for figure in benchmark.figures():
        print(figure, flush=True)
        found.append(figure)
sys.exit(not all(figure.holds for figure in found))
