"""Worker processes: as many as there is use for, early, and ready for jobs whatever they could not import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from attcem.config import Experiment
from attcem.cores import sharing
from attcem.sweep.local import Local, Worker
from attcem.sweep.perform import Job, Outcome
from tests.sweep.made import is_worker, wait_until


@pytest.mark.parametrize(("jobs", "expected", "early"), [(2, 5, 2), (3, 1, 1), (2, 0, 0)])
def test_no_more_workers_start_early_than_have_something_to_do(jobs, expected, early):
    engine = Local(jobs, expected)
    numbers = [worker.process.pid for worker in engine.idle]
    assert len(numbers) == early and engine.slots == jobs
    wait_until(lambda: all(map(is_worker, numbers)))
    engine.close()
    engine.close()
    assert not any(map(is_worker, numbers))


def test_a_module_that_cannot_be_imported_is_told_by_the_first_job_that_needs_it(tmp_path):
    worker = Worker(sharing(2), "attcem.no_such_module")
    worker.pipe.send(Job("a", tmp_path / "a", Experiment(), "attcem.no_such_module:run"))
    told = worker.told()
    worker.close()
    assert isinstance(told, Outcome) and not told.died and "no_such_module" in told.cause


def test_counting_runs_and_starting_workers_needs_no_torch(tmp_path):
    path = Path(tmp_path) / "sweep.yaml"
    path.write_text("seeds: [0, 1]")
    code = """
import sys
from pathlib import Path
from attcem.sweep.cluster import Cluster
from attcem.sweep.grid import how_many
from attcem.sweep.local import Local
assert how_many(Path(sys.argv[1])) == 2
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
