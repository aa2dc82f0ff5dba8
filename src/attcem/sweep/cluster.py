"""Runs on a Ray cluster: the same jobs, done by the same function, in a folder that all machines share."""

import logging
import os
import socket
from typing import Any

from attcem.cores import THREADS
from attcem.sweep.perform import Job, Outcome, perform


class Cluster:
    """A run per task; by default one processor each, as many at a time as the cluster has processors."""

    def __init__(self, jobs: int | None = None, address: str | None = None) -> None:
        try:
            import ray
        except ImportError:
            raise ValueError("ray is not installed: pip install 'attcem[ray]', or use --engine local") from None
        self.ray = ray
        try:
            host, _, port = (address or "").removeprefix("ray://").rpartition(":")
            if port.isdigit():  # fails at once where nobody listens; Ray itself would try for minutes
                socket.create_connection((host, int(port)), timeout=10).close()
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, RuntimeError) as error:
            raise ValueError(
                f"no Ray cluster at {address!r} ({error}): start one with `ray start --head`, "
                "or leave --address out to use this machine"
            ) from None
        have = ray.cluster_resources()
        processors = max(1, int(have.get("CPU", 1)))
        self.slots = jobs or processors
        threads = max(1, processors // self.slots)
        variables = dict.fromkeys(THREADS, str(threads))
        variables |= {name: os.environ[name] for name in ("ATTCEM_DATA",) if name in os.environ}
        share = {"num_cpus": threads, "num_gpus": min(1.0, have.get("GPU", 0) / self.slots)}
        self.task = ray.remote(perform).options(**share, max_retries=0, runtime_env={"env_vars": variables})
        self.busy: dict[Any, Job] = {}

    def start(self, job: Job) -> None:
        self.busy[self.task.remote(job)] = job

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        ended, _ = self.ray.wait(list(self.busy), num_returns=1, timeout=seconds)
        return [(self.busy.pop(task), self.outcome(task)) for task in ended]

    def outcome(self, task: Any) -> Outcome:
        """What the task returned; one that could not return anything has died."""
        try:
            return self.ray.get(task)
        except self.ray.exceptions.RayError as error:
            said = str(error).strip().partition("\n")[0]
            return Outcome(cause=f"Ray lost it ({type(error).__name__}: {said})", died=True)

    def close(self) -> None:
        for task in self.busy:
            self.ray.cancel(task, force=True)
        self.ray.shutdown()
