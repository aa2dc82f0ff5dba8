"""What the documentation shows is executed: README, guides, docstrings, examples."""

import doctest
import importlib
import pkgutil
import re
import runpy
import shlex
from pathlib import Path

import pytest

import attcem
from attcem.cli import SETTABLE, build_parser, main
from attcem.configfile import parse_experiment
from attcem.defences import DEFENCES
from attcem.listing import preset_paths, sweep_paths
from attcem.sweep.grid import read_sweep
from tests.docs.pages import ROOT, code, read
from tests.docs.quickly import BRIEF, shorten, shrink

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = [name for _, name, _ in pkgutil.walk_packages(attcem.__path__, "attcem.") if not name.endswith("__main__")]


@pytest.fixture
def quickly(monkeypatch, fashion, tmp_path):
    """Everything as written, on a slice of the data and with the shortest suite, in a folder of its own."""
    shorten(monkeypatch, shrink(fashion, private=128), BRIEF)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").symlink_to(ROOT / "results")
    return tmp_path


def run_python(page: Path) -> None:
    """One block after the other, with the names of those before it."""
    names: dict = {}
    for block in code(page, "python"):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize("page", [page for page in PAGES[1:] if code(page, "python")], ids=lambda page: page.name)
def test_python_blocks_run_from_top_to_bottom(page, quickly):
    run_python(page)


def test_the_readme_example_is_short_and_writes_its_page(quickly):
    example = code(ROOT / "README.md", "python")[0]
    assert len([line for line in example.splitlines() if line.strip()]) <= 12
    run_python(ROOT / "README.md")
    assert (quickly / "report.html").stat().st_size > 10_000


def test_commands_of_the_page_on_own_data_run(quickly):
    """In the order of the page: its Python writes the data that its commands read."""
    page, names = ROOT / "docs" / "own-model.md", {}
    for language, block in read(page).fences:
        if language == "python" and "split(" not in block:
            exec(compile(block, str(page), "exec"), names)
        for line in block.splitlines() if language == "sh" else ():
            assert main(shlex.split(line)[1:]) == 0
    assert len(list(quickly.glob("runs/*/result.json"))) == 2


COMMANDS = [
    (page.name, line.partition("#")[0].strip())
    for page in PAGES
    for block in code(page, "sh")
    for line in block.splitlines()
    if line.startswith("attcem ")
]


@pytest.mark.parametrize(("page", "line"), COMMANDS, ids=lambda text: str(text)[:60])
def test_commands_are_ones_that_the_program_takes(page, line):
    options, rest = build_parser().parse_known_args(line.split()[1:])
    assert options.call and (not rest or options.call in SETTABLE)
    if options.command == "sweep":
        read_sweep(sweep_paths()[Path(options.file).stem], preset_paths(), seeds=options.seeds, overrides=rest)
    if options.command == "run" and not (rest and rest[0].startswith("runs/")):
        named = preset_paths().get(Path(rest[0]).stem) if rest and not rest[0].startswith("-") else None
        parse_experiment([str(named), *rest[1:]] if named else rest)


def test_there_are_commands_to_check_and_make_targets_exist():
    assert len(COMMANDS) >= 5
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"^make (\w+)", "\n".join(code(page, "sh")), re.MULTILINE)) <= targets


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(path, quickly):
    result = runpy.run_path(str(path))["main"](epochs=1, suite="smoke")
    assert 0 < result.worst.mse < 1


def test_the_guide_lists_every_preset():
    table = (ROOT / "docs" / "guide.md").read_text().partition("## Presets")[2].partition("```")[0]
    listed = [
        name for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    assert sorted(listed) == sorted(preset_paths() | sweep_paths())


def test_every_defence_has_a_section():
    pages = [ROOT / "docs" / f"{name}.md" for name in ("surrogates", "release", "penalties")]
    sections = [title for page in pages for level, title in read(page).headings if level == 2]
    assert sorted([*sections, "none"]) == sorted(DEFENCES)


def test_the_log_has_an_index_of_its_questions():
    log = read(ROOT / "LOG.md")
    index = re.findall(r"^\| \[(.*?)\]\(#(.*?)\) \|", (ROOT / "LOG.md").read_text(), re.MULTILINE)
    assert [question for question, _ in index] == [title for level, title in log.headings if level == 2]


def test_the_readme_tree_names_what_is_there():
    readme = (ROOT / "README.md").read_text()
    for path in (ROOT / "src" / "attcem").iterdir():
        if not path.name.startswith(("_", "py.")) and path.name != "__pycache__":
            assert path.name in readme, f"{path.name} is missing from the README's file tree"
