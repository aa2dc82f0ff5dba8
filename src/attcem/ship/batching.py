"""Dynamic batching: requests that wait at the same time are computed together, as far as that is faster."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

Run = Callable[[np.ndarray], np.ndarray]

NEAR = 1.02  # a batch is worth its wait if a picture takes less time than this, in units of the best batch's
LONG = 0.1  # seconds after which no larger batch is tried at the start
AT_ONCE = 0.002  # seconds of work that are done between two events; longer work moves to a thread


def profitable_rows(run: Run, one: np.ndarray, most: int, clock: Callable[[], float] = time.perf_counter) -> int:
    """How many pictures to compute together: the smallest power of two that is nearly as fast for each as any."""
    found: dict[int, float] = {}
    rows = 1
    while rows <= most and found.get(rows // 2, 0.0) * rows < LONG:
        batch = np.repeat(one, rows, axis=0)
        found[rows] = min(timed(run, batch, clock) for _ in range(4)) / rows
        rows *= 2
    best = min(found.values())
    return next(rows for rows, each in found.items() if each <= NEAR * best)


def timed(run: Run, batch: np.ndarray, clock: Callable[[], float]) -> float:
    started = clock()
    run(batch)
    return clock() - started


class Batcher:
    """Runs what is asked, together with what else waits; every answer goes to who asked for it."""

    def __init__(self, run: Run, rows: int, seconds: Callable[[int, float], None] = lambda rows, seconds: None) -> None:
        self.run, self.rows, self.told = run, rows, seconds
        self.waiting: deque[tuple[np.ndarray, asyncio.Future[np.ndarray]]] = deque()
        self.busy = False
        self.pace = float("inf")  # seconds that a picture took the last time
        self.thread = ThreadPoolExecutor(1, "onnxruntime")

    async def __call__(self, values: np.ndarray) -> np.ndarray:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[np.ndarray] = loop.create_future()
        self.waiting.append((values, answer))
        if not self.busy:
            self.busy = True
            loop.call_soon(self.begin, loop)  # after the others that became ready at the same moment
        return await answer

    def begin(self, loop: asyncio.AbstractEventLoop) -> None:
        """Compute what waits, up to the profitable number of pictures."""
        taken = self.take()
        if not taken:
            self.busy = False
            return
        batch = taken[0][0] if len(taken) == 1 else np.concatenate([values for values, _ in taken])
        if len(batch) * self.pace <= AT_ONCE:
            self.end(loop, taken, self.compute(batch))
        else:
            running = loop.run_in_executor(self.thread, self.compute, batch)
            running.add_done_callback(lambda done: self.end(loop, taken, done.result()))

    def take(self) -> list[tuple[np.ndarray, asyncio.Future[np.ndarray]]]:
        """The first that waits and as many after it as fit; nobody waits for who has gone away."""
        taken: list[tuple[np.ndarray, asyncio.Future[np.ndarray]]] = []
        rows = 0
        while self.waiting and (not taken or rows + len(self.waiting[0][0]) <= self.rows):
            values, answer = self.waiting.popleft()
            if not answer.done():
                taken.append((values, answer))
                rows += len(values)
        return taken

    def compute(self, batch: np.ndarray) -> np.ndarray | Exception:
        started = time.perf_counter()
        try:
            found = self.run(batch)
        except Exception as error:
            return error
        seconds = time.perf_counter() - started
        self.pace = seconds / len(batch)
        self.told(len(batch), seconds)
        return found

    def end(
        self,
        loop: asyncio.AbstractEventLoop,
        taken: list[tuple[np.ndarray, asyncio.Future[np.ndarray]]],
        found: np.ndarray | Exception,
    ) -> None:
        """Hand out the answers, and go on with what came meanwhile."""
        place = 0
        for values, answer in taken:
            if not answer.done():
                if isinstance(found, Exception):
                    answer.set_exception(found)
                else:
                    answer.set_result(found[place : place + len(values)])
            place += len(values)
        if self.waiting:
            loop.call_soon(self.begin, loop)
        else:
            self.busy = False

    def close(self) -> None:
        self.thread.shutdown(wait=False, cancel_futures=True)
