"""What `make lint` must see: a name that nobody defined, and no such name in a shape."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHAPES = '''"""Two shapes."""

from jaxtyping import Float
from torch import Tensor


def double(x: Float[Tensor, "{one}"], y: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
    """Twice y."""
    return y + {name}
'''


def ruff(text: str) -> str:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--output-format",
        "concise",
        "--stdin-filename",
        "src/new.py",
        "-",
    ]
    return subprocess.run(command, input=text, capture_output=True, text=True, cwd=ROOT).stdout


@pytest.mark.parametrize("one", [" b", " b *latent", "*latent", "b 2", "..."])
def test_ruff_takes_no_shape_for_an_undefined_name(one):
    assert "All checks passed" in ruff(SHAPES.format(one=one, name="y"))


def test_ruff_reports_an_undefined_name_that_shapes_use_too():
    reported = ruff(SHAPES.format(one=" b", name="b"))
    assert "9:16: F821" in reported and "Found 1 error" in reported


def test_mypy_reports_an_undefined_name(tmp_path):
    (tmp_path / "new.py").write_text("def double(x: int) -> int:\n    return x + b\n")
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "new.py")]
    assert 'Name "b" is not defined' in subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
