"""`python -m attcem.sweep.worker FD`: does the jobs that come through a pipe until its other end is gone."""

import faulthandler
import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection

from attcem.sweep.perform import Job, perform


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
