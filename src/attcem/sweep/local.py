"""Runs on this machine, by worker processes that are replaced when they die: `python -m attcem.sweep.local FD`."""

import faulthandler
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from attcem.cores import cores, ending, sharing
from attcem.sweep.perform import Job, Outcome, perform


class Worker:
    """A process and the pipe to it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.pipe: Connection
        self.pipe, theirs = Pipe()
        command = [sys.executable, "-m", "attcem.sweep.local", str(theirs.fileno())]
        self.process = subprocess.Popen(
            command, env=environment, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        theirs.close()

    def outcome(self) -> Outcome:
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            self.pipe.close()
            return Outcome(cause=f"its process {ending(self.process.wait())}", died=True)

    def close(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class Local:
    """As many processes as cores, or as asked for; threads are shared out so that they do not fight."""

    def __init__(self, jobs: int | None = None) -> None:
        self.slots = jobs or cores()
        self.idle: list[Worker] = []
        self.busy: dict[Connection, tuple[Worker, Job]] = {}

    def start(self, job: Job) -> None:
        worker = self.idle.pop() if self.idle else Worker(sharing(self.slots))
        with suppress(ConnectionError):  # one that died while idle counts as one that died at work
            worker.pipe.send(job)
        self.busy[worker.pipe] = worker, job

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        ended = []
        ready = wait(list(self.busy), seconds)
        for pipe in [pipe for pipe in self.busy if pipe in ready]:
            worker, job = self.busy.pop(pipe)
            ended.append((job, outcome := worker.outcome()))
            if not outcome.died:
                self.idle.append(worker)
        return ended

    def close(self) -> None:
        for worker in [*self.idle, *(worker for worker, _ in self.busy.values())]:
            worker.close()


def serve(pipe: Connection) -> None:
    """One job after the other; a second thread watches the pipe, so that no worker outlives its driver."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the driver decides
    faulthandler.enable()
    jobs: queue.Queue[Job] = queue.Queue()
    threading.Thread(target=receive, args=(pipe, jobs), daemon=True).start()
    while True:
        pipe.send(perform(jobs.get()))


def receive(pipe: Connection, jobs: queue.Queue[Job]) -> None:
    """Pass jobs on; when the driver is gone, so is this process, at once: every file is whole or not there."""
    try:
        while True:
            jobs.put(pipe.recv())
    finally:
        os._exit(0)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
