"""The tests of a second place for tensors, in a process of their own: torch then has threads that no fork survives."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "elsewhere"


@pytest.mark.slow
def test_elsewhere(fashion, shared):
    """Its folder lies in ours, as that of a process of pytest does, so that it finds our cache."""
    options = ["-n", "0", "-p", "no:cacheprovider", "--basetemp", str(shared / "elsewhere")]
    line = [sys.executable, "-m", "pytest", *options, *(str(HERE / name) for name in ("rules.py", "everything.py"))]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | {"PYTEST_XDIST_WORKER": "elsewhere"})
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
