"""The tests of a second place for tensors, in a process of their own: torch then has threads that no fork survives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "elsewhere"


@pytest.mark.parametrize("name", ["rules", "everything"])
def test_elsewhere(name, fashion, forked, shared):
    """Its folder lies in ours, as that of a process of pytest does, so that it finds our cache."""
    options = ["-n", "0", "-p", "no:cacheprovider", "--basetemp", str(shared / name)]
    line = [sys.executable, "-m", "pytest", *options, str(HERE / f"{name}.py")]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | {"PYTEST_XDIST_WORKER": name})
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
