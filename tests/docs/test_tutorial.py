"""Every command of the tutorial, run by a shell from `git clone` to the last page, as a newcomer would."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.docs.pages import ROOT, code
from tests.forked import fork

PAGE = ROOT / "docs" / "tutorial.md"

PYTHON3 = """\
#!/bin/sh
# The interpreter of the tests; an environment that it makes holds the program as it is installed here.
if [ "$1 $2" = "-m venv" ]; then
    mkdir -p "$3/bin" && cp "{bin}/environment/"* "$3/bin"
else
    exec "{python}" "$@"
fi
"""
ATTCEM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect("{server}")
    socket.send_fds(server, [json.dumps([os.getcwd(), sys.argv[1:]]).encode()], [0, 1, 2])
    sys.exit(int(server.recv(8)))
"""
ACTIVATE = 'PATH="$PWD/.venv/bin:$PATH"\n'


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def server(fashion) -> Iterator[Path]:
    """Where a process does what it is asked to, in seconds."""
    with TemporaryDirectory() as folder:  # a socket's path must be short
        path = Path(folder) / "server"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            listener.listen()
            serving = fork("tests.docs.serving", [str(listener.fileno())], pass_fds=[listener.fileno()])
        yield path
        serving.kill()
        serving.wait()


@pytest.fixture
def newcomer(server, tmp_path) -> dict[str, str]:
    """A shell's environment in which installing costs nothing and runs take seconds."""
    binaries, python = tmp_path / "bin", sys.executable
    put(binaries / "python3", PYTHON3.format(bin=binaries, python=python))
    put(binaries / "environment" / "python", f'#!/bin/sh\nexec "{python}" "$@"\n')
    put(binaries / "environment" / "pip", "#!/bin/sh\n")
    put(binaries / "environment" / "attcem", ATTCEM.format(server=server, python=python))
    put(binaries / "environment" / "activate", ACTIVATE)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        put(tmp_path / "origin" / name, (ROOT / name).read_text())
    shutil.copytree(ROOT / "experiments", tmp_path / "origin" / "experiments")
    put(tmp_path / "gitconfig", "[user]\nname = newcomer\nemail = newcomer@example.org\n")
    shell = os.environ | {
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig"),
        "REPOSITORY": str(tmp_path / "origin"),
        "OMP_NUM_THREADS": "1",
    }
    shell = {
        name: value for name, value in shell.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "GIT_DIR", "PYTHON")
    }
    for command in ("git init -q", "git add -A", "git commit -q -m origin"):
        subprocess.run(command.split(), cwd=tmp_path / "origin", env=shell, check=True)
    return shell


@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("git") and shutil.which("make")), reason="the tutorial begins with git and make")
def test_the_tutorial_runs_from_clone_to_comparison(newcomer, tmp_path):
    script = "\n".join(["set -eux", *code(PAGE, "sh")])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=newcomer, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    clone = tmp_path / "attcem"
    for page in ("runs/demo/report.html", "mine.html"):
        assert "mean image" in (clone / page).read_text()
    assert {path.parent.name for path in clone.glob("runs/mine/*/result.json")} >= {"none", "noise-0.3", "bound-3"}
    assert "worst-case MSE at accuracy" in done.stdout


def test_the_tutorial_shows_what_its_commands_print():
    """Lines of the sample output begin as the program's own do: the numbers are those of one real run."""
    shown = "".join(code(PAGE, "text"))
    for line in ("accuracy ", "worst MSE ", "of the mean image's ", "flag: ", "worst-case MSE at accuracy", "verdict"):
        assert line in shown
