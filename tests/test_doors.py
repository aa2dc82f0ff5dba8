"""Rooms import only through their doors."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import attcem

SOURCE = Path(attcem.__file__).parent

WORDS = {"types", "naming", "links", "config", "progress", "files", "reading"}
DOORS = {
    "types": {"files", "reading"},
    "naming": set(),
    "links": set(),
    "reading": set(),
    "escaping": set(),
    "locks": set(),
    "files": {"locks"},
    "workplace": {"files", "locks"},
    "cores": set(),
    "device": set(),
    "config": {"naming", "links"},
    "terminal": {"escaping"},
    "written": {"escaping"},
    "progress": {"escaping"},
    "maths": set(),
    "layers": set(),
    "data": WORDS,
    "models": WORDS | {"layers"},
    "defences": WORDS | {"maths", "layers"},
    "train": WORDS | {"escaping", "workplace", "data", "models", "defences", "device"},
    "threat": WORDS | {"data", "models", "defences"},
    "attacks": WORDS | {"data", "layers", "maths"},
    "metrics": WORDS | {"maths"},
    "runs": {"types", "links"},
    "language": {"naming"},
    "report": {"types", "files", "language", "reading", "runs"},
    "compare": {"types", "naming", "language", "metrics", "escaping", "runs", "written"},
    "figures": {"types", "files", "language", "runs"},
    "slides": WORDS | {"compare", "defences", "figures", "language", "models", "report", "runs"},
    "ship": {"__version__", "types", "reading", "files", "locks", "models", "defences", "layers"},
    "check": {"types", "reading", "runs", "ship"},
    "assess": WORDS
    | {"cores", "locks", "data", "models", "defences", "train", "threat", "attacks", "metrics", "maths"},
    "configfile": WORDS | {"data", "models", "defences", "attacks"},
    "parts": WORDS | {"configfile", "data", "defences", "models"},
    "folders": {"config", "configfile", "files", "links"},
    "experiment": WORDS
    | {
        "folders",
        "parts",
        "workplace",
        "data",
        "models",
        "defences",
        "device",
        "train",
        "assess",
        "configfile",
        "side_by_side",
    },
    "shipped": WORDS | {"assess", "data", "defences", "experiment", "folders", "models", "parts", "ship", "train"},
    "pages": WORDS
    | {"attacks", "data", "defences", "folders", "maths", "models", "parts", "ship", "shipped", "threat"},
    "demo": WORDS | {"compare", "experiment", "report"},
    "side_by_side": WORDS | {"assess", "attacks", "cores", "experiment"},
    "sweep": WORDS | {"configfile", "parts", "cores", "escaping", "experiment", "locks", "terminal", "workplace"},
    "tune": WORDS | {"configfile", "parts", "experiment", "locks", "sweep", "workplace"},
    "cut": WORDS
    | {
        "assess",
        "configfile",
        "data",
        "defences",
        "experiment",
        "figures",
        "locks",
        "maths",
        "metrics",
        "models",
        "parts",
    }
    | {"runs", "sweep"},
    "explain": WORDS | {"data", "models", "defences", "experiment", "figures"},
}


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "attcem":
                rooms |= {alias.name for alias in node.names}
            elif node.module and node.module.startswith("attcem."):
                rooms.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            rooms |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("attcem.")}
    return rooms


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_through_its_doors(path):
    room = room_of(path)
    if room in {
        "cli",
        "commands",
        "options",
        "listing",
        "__init__",
        "__main__",
    }:  # the front of the house sees every room
        return
    wrong = imported_rooms(path) - DOORS[room] - {room}
    assert not wrong, f"{path.name} of room {room} must not import {sorted(wrong)}"


def asks_the_front_door(path: Path) -> list[str]:
    """Where a room imports the package itself: as it is loaded, or in a function, when it is called."""
    tree = ast.parse(path.read_text())
    functions = {id(node) for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for node in ast.walk(f)}
    asking = (n for n in ast.walk(tree) if isinstance(n, ast.Import) and any(name.name == "attcem" for name in n.names))
    return ["when called" if id(node) in functions else "when loaded" for node in asking]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_asks_the_front_of_the_house_only_when_called(path):
    """`import attcem` offers what users see; a method that users call may use it, as Result.report does."""
    assert "when loaded" not in asks_the_front_door(path)


def test_the_check_sees_a_wrong_door(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from attcem.train.loop import fit\n    from attcem import threat\n")
    assert imported_rooms(bad) == {"train", "threat"}
    bad.write_text("import attcem\n\ndef f():\n    import attcem\n")
    assert asks_the_front_door(bad) == ["when loaded", "when called"]


def test_there_is_no_utils():
    assert not list(SOURCE.rglob("utils*"))


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_at_once(tree: ast.Module, modules: set[str]) -> set[str]:
    """The modules that a module needs before it can be used itself."""
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    named = {(node.module, f"{node.module}.{alias.name}") for node in froms for alias in node.names}
    return {full if full in modules else module for module, full in named} & modules


def test_no_two_modules_need_each_other():
    paths = {module_name(path): path for path in SOURCE.rglob("*.py")}
    needed = {name: imported_at_once(ast.parse(path.read_text()), set(paths)) for name, path in paths.items()}
    try:
        tuple(TopologicalSorter(needed).static_order())
    except CycleError as error:
        pytest.fail(f"these import each other: {' ← '.join(error.args[1])}")
