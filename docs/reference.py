"""The directive `reference`: the public names of some modules, from their docstrings, which are Markdown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import signature, stringify_signature

ARGUMENT = re.compile(r"(\w+): (.*)")


class Reference(SphinxDirective):
    """One module per line of its content; every public name is described once, where it is met first."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The descriptions, as if they had been written into the page."""
        lines = [line for name in self.content if name.strip() for line in describe_module(name.strip())]
        found = nodes.container()
        self.state.nested_parse(StringList(lines, "docstrings"), self.content_offset, found)
        return found.children


def describe_module(name: str) -> Iterator[str]:
    """What a module says of itself, then its public names."""
    module = import_module(name)
    yield from (f"**`{name}`.** {(module.__doc__ or '').strip().removeprefix(f'{name}: ')}", "")
    for member in public(module):
        thing = getattr(module, member)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield from describe(f"{name}.{member}", thing)


def public(module: ModuleType) -> list[str]:
    """The names that a module offers: those of its `__all__`, or all that it defines itself."""
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    return sorted(getattr(module, "__all__", [name for name in own if not name.startswith("_")]), key=str.lower)


def describe(path: str, thing: Any) -> Iterator[str]:
    """A class with its own methods, or a function, in the words of Sphinx's Python domain."""
    kind = "class" if inspect.isclass(thing) else "function"
    yield from (f":::::{{py:{kind}}} {path}{shown(thing)}", "", *docstring(thing), "")
    if kind == "class":
        for name, method in vars(thing).items():
            if inspect.isfunction(method) and not name.startswith("_") and inspect.getdoc(method):
                yield from (
                    f"::::{{py:method}} {name}{shown(method, method=True)}",
                    "",
                    *docstring(method),
                    "",
                    "::::",
                    "",
                )
    yield from (":::::", "")


def shown(thing: Any, *, method: bool = False) -> str:
    """The signature in one line; none where there is none to see."""
    try:
        found = signature(thing, bound_method=method)
    except (TypeError, ValueError):
        return ""
    return stringify_signature(found, show_annotation=not inspect.isclass(thing), unqualified_typehints=True)


def docstring(thing: Any) -> Iterator[str]:
    """A docstring as Markdown: arguments become a list, examples a code block."""
    text = inspect.getdoc(thing) or ""
    listed = False
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(">>>"):
            yield from ("```pycon", *paragraph.splitlines(), "```", "")
            continue
        for line in paragraph.splitlines():
            listed = listed or line == "Args:"
            argument = ARGUMENT.fullmatch(line.strip())
            if line == "Args:":
                yield ""
            elif listed and argument and line.startswith("    ") and not line.startswith("     "):
                yield f"- **{argument[1]}**: {argument[2]}"
            else:
                yield line.strip() if listed else line
        yield ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("reference", Reference)
    return {"parallel_read_safe": True}
