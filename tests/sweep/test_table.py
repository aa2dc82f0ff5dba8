"""What a sweep shows while it runs, and in which order it starts what."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from attcem.config import Experiment
from attcem.sweep import table
from attcem.sweep.driver import sweep
from attcem.sweep.grid import Run
from attcem.sweep.perform import LOG, Job, Outcome
from attcem.sweep.table import Table, reached

RUNS = [
    Run("none", Experiment(), "as the base"),
    Run("noise", Experiment(), "sigma=1"),
    Run("loud", Experiment(), "s=9"),
]


@pytest.mark.parametrize("terminal", [True, False])
def test_it_tells_what_runs_how_far_it_is_what_is_best_and_why_any_failed(terminal, tmp_path, monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, width=200, color_system=None)
    monkeypatch.setattr(table, "console", console)
    monkeypatch.setattr("attcem.progress.console", console)
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / LOG).write_text("process 3 on here\nepoch 4/9  loss 3\nsomething else\n")
    shown = Table(tmp_path)
    shown.begin(RUNS, {"none": Outcome(0.9, 0.01)}, slots=2)
    shown.started("noise", 1)
    shown.started("loud", 2)
    shown.show()
    assert ("epoch 4/9" in screen.getvalue()) == terminal
    shown.ended("noise", Outcome(0.87, 0.02))
    shown.ended("loud", Outcome(cause="no space left"))
    shown.close()
    said = screen.getvalue()
    assert "2 of 3 done" in said and "1 failed" in said and "no space left" in said
    assert "noise (sigma=1), accuracy 0.8700, worst MSE 0.02000" in said


def test_a_run_that_leaks_less_but_fails_its_task_is_not_the_best(tmp_path):
    shown = Table(tmp_path, shown=False)
    shown.begin(RUNS, {"none": Outcome(0.9, 0.01), "noise": Outcome(0.86, 0.02), "loud": Outcome(0.2, 0.5)}, 1)
    best = shown.best()
    assert best is not None and best[0] == "noise"


def test_how_far_a_run_is_stands_in_its_log(tmp_path):
    log = tmp_path / LOG
    assert reached(log) == ""
    log.write_text("x" * 10_000 + "\nepoch 1/2  loss\nattack 1 of 3: decoder_small\nunfinished li")
    assert reached(log) == "attack 1 of 3: decoder_small"


class Mortal:
    """An engine on which one run's process dies a few times."""

    slots = 1

    def __init__(self, deaths: int) -> None:
        self.deaths, self.started, self.closed = deaths, [], False

    def start(self, job: Job) -> None:
        self.started.append(job.name)
        self.job = job

    def wait(self, seconds: float) -> list[tuple[Job, Outcome]]:
        dies = self.job.name == "noise" and self.deaths > 0
        self.deaths -= dies
        return [(self.job, Outcome(cause="its process was killed", died=True) if dies else Outcome(0.5, 0.1))]

    def close(self) -> None:
        self.closed = True


@pytest.mark.parametrize("deaths", [0, 2, 3])
def test_a_run_whose_process_dies_gets_three_attempts(deaths, tmp_path: Path):
    engine = Mortal(deaths)
    outcomes = sweep(RUNS, tmp_path, engine, Table(tmp_path, shown=False))
    assert engine.started == ["none", *["noise"] * min(3, deaths + 1), "loud"] and engine.closed
    assert (outcomes["noise"].cause is not None) == (deaths == 3) and outcomes["loud"].accuracy == 0.5
