"""The one door for YAML: no tags, no key twice, and aliases that stay small when they are written out."""

import json
import re
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from attcem.reading.plain import DEEPEST, checked, mapping_of, read_content

LIMIT = 200_000  # characters of a file, and of what it becomes once every alias is written out
FLOAT, DATE = "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"


class Loader(yaml.SafeLoader):
    """PyYAML's safe loader, bounded; 1e-3 is a number, as in YAML 1.2, and a date is text."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        letter: [(tag, pattern) for tag, pattern in known if tag not in (FLOAT, DATE)]
        for letter, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = 0
        self.sizes: dict[int, int] = {}  # of every finished node, its characters with all aliases written out

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        if getattr(event, "tag", None) is not None:
            raise ValueError(f"the tag {event.tag!r} is not read: write the plain value")
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"nested more than {DEEPEST} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self.sizes:
                raise ValueError(f"*{event.anchor} stands for something that it is a part of")
        elif node is not None:
            parts = chain(*node.value) if isinstance(node, yaml.MappingNode) else node.value  # nodes, or characters
            self.sizes[id(node)] = 1 + sum(1 if isinstance(part, str) else self.sizes[id(part)] for part in parts)
            if self.sizes[id(node)] > LIMIT:
                raise ValueError(f"longer than {LIMIT:,} characters once its aliases are written out")
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """A mapping whose keys are there once: of two, YAML would silently keep the last."""
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise ValueError(f"the key {key.value!r} is there twice (line {key.start_mark.line + 1})")
                seen.add((key.tag, key.value))
        return node


FLOATS = re.compile(
    r"([-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)([eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
)
Loader.add_implicit_resolver(FLOAT, FLOATS, list("-+0123456789."))


def parse_yaml(text: str) -> Any:
    """The plain value that YAML text stands for; a ValueError says why there is none."""
    if len(text) > LIMIT:
        raise ValueError(f"longer than {LIMIT:,} characters")
    with suppress(ValueError, RecursionError):  # JSON, which YAML reads too, is read exactly, and faster
        return checked(json.loads(text, object_pairs_hook=mapping_of))
    try:
        return checked(yaml.load(text, Loader))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


def read_yaml(path: str | Path) -> dict[str, Any]:
    try:
        found = parse_yaml(read_content(Path(path), LIMIT).decode())
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} must hold settings such as `data: {{name: fashion}}`")
    return found
