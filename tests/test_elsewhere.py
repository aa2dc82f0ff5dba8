"""The tests of a second place for tensors, in a process of their own: torch then has threads that no fork survives."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "elsewhere"


@pytest.mark.parametrize("name", ["rules", "everything"])
def test_elsewhere(name):
    line = [sys.executable, "-m", "pytest", "-n", "0", "--durations=0", str(HERE / f"{name}.py")]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
