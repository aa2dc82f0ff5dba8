"""What the package says: every template that stands in its code or in a template of a page."""

import ast
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, nodes

import attcem

SOURCE = Path(attcem.__file__).parent
SAYING = {"say", "phrase"}


def said() -> dict[str, str]:
    """Template → where it is said."""
    found = {}
    for path in sorted(path for room in rooms() for path in room.rglob("*.py")):
        for template in in_code(ast.parse(path.read_text()), path):
            found.setdefault(template, str(path.relative_to(SOURCE)))
    for path in sorted((SOURCE / "report" / "templates").glob("*.*")):
        for template in in_page(Environment().parse(path.read_text()), path):
            found.setdefault(template, str(path.relative_to(SOURCE)))
    return found


def rooms() -> set[Path]:
    """Those that know of languages; elsewhere, who says something prints it."""
    knowing = [path for path in SOURCE.glob("*/*.py") if "attcem.language import" in path.read_text()]
    return {path.parent for path in knowing} - {SOURCE / "language"}


def in_code(tree: ast.AST, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and last_name(node.func) in SAYING:
            (first, *_) = node.args
            if isinstance(first, ast.Constant):
                yield first.value
            else:  # an entry of a table, or its field: noted with `phrase` where it stands
                assert isinstance(first, ast.Name | ast.Attribute | ast.Subscript), f"{path}:{node.lineno}: no literal"


def last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def in_page(tree: nodes.Template, path: Path) -> Iterator[str]:
    for call in tree.find_all(nodes.Call):
        if getattr(call.node, "name", "") == "say":
            first = call.args[0]
            if isinstance(first, nodes.Const):
                yield first.value
            else:
                assert isinstance(first, nodes.Name | nodes.Getattr | nodes.Getitem), (
                    f"{path}:{call.lineno}: no literal"
                )
