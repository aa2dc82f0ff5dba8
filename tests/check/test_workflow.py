"""The example of a workflow: its shell steps do what they say, as far as a shell without GitHub can."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import yaml

from attcem.cli import main
from tests.check.test_check import saved
from tests.docs.pages import ROOT

WORKFLOW = ROOT / "examples" / "check.yml"


def run_steps(folder: Path, run: Path) -> int:
    """Every shell step in turn, as GitHub does: `bash -e`, the first failure ends it; the code of the last one."""
    workflow = yaml.safe_load(WORKFLOW.read_text())
    tools = folder / "tools"
    tools.mkdir()
    (tools / "python").write_text('#!/bin/sh\necho "$@" >> installed\n')  # no network: what it would install
    (tools / "attcem").write_text(f'#!/bin/sh\nexec {sys.executable} -m attcem "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    given = {"PATH": f"{tools}:{os.environ['PATH']}", "RUN": str(run), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment = os.environ | workflow["env"] | given
    for step in workflow["jobs"]["check"]["steps"]:
        if "run" in step:
            code = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=folder, env=environment).returncode
            if code:
                return code
    return 0


def test_the_build_fails_with_a_network_that_leaks(tmp_path):
    assert run_steps(tmp_path, saved(tmp_path / "run", ssim=0.5)) == 1
    assert "attcem[ship]" in (tmp_path / "installed").read_text()
    assert ElementTree.parse(tmp_path / "check.xml").getroot().attrib["failures"] == "1"
    assert (tmp_path / "check.json").exists()


def test_the_same_command_lets_a_better_one_pass(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "run")
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"]
    (command,) = [step["run"] for step in steps if step.get("run", "").startswith("attcem")]
    assert main(shlex.split(command.replace("$RUN", "run").replace("\\\n", ""))[1:]) == 0


def test_the_verdict_is_kept_also_where_the_build_fails():
    steps = yaml.safe_load(WORKFLOW.read_text())["jobs"]["check"]["steps"]
    (upload,) = [step for step in steps if "upload-artifact" in step.get("uses", "")]
    assert upload["if"] == "always()" and {"check.xml", "check.json"} == set(upload["with"]["path"].split())
