"""One small change somewhere in a tree of plain values."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Iterator
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**62, -(2**63), 10**30, 0.5, -0.0, 1e308, -1e308, 5e-324,
    math.nan, math.inf, -math.inf, "", "0", "nan", "p", "é\u202e", "\ud800", "\0", "../../x", "=1+1", "<b>",
    "a" * 5000, [], {}, [[]], [None], {"": None}, [1, "a"], {"a": {"b": 1}}, [0.1] * 300,
)  # fmt: skip
"""Values of every type, at their edges."""

NUMBERS = [value for value in ODD if isinstance(value, int | float) and not isinstance(value, bool)]

KIN: dict[type, list[Any]] = {
    float: [value for value in NUMBERS if value != 10**30],
    int: [value for value in NUMBERS if isinstance(value, int) and value != 10**30],
    str: [value for value in ODD if isinstance(value, str) and value != "\ud800"],
}
"""What a reader may well accept in the place of a number or word."""


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    for key, inner in tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ():
        yield tree, key
        yield from nodes(inner)


def of_tree(rng: random.Random, tree: Any) -> tuple[Any, str]:
    """Replace, remove, rename, move or wrap one node, as if a stranger had written the file."""
    tree = copy.deepcopy(tree)
    depths = list(nodes(tree))
    if not depths:
        return rng.choice(ODD), "the whole is replaced"
    parent, key = rng.choice(depths)
    match rng.choice(["odd", "kin", "kin", "remove", "rename", "swap", "deep", "grow", "text"]):
        case "odd":
            parent[key] = rng.choice(ODD)
            return tree, f"{key!r} is {parent[key]!r:.60}"
        case "kin":
            kin = [value for value in ODD if type(value) is type(parent[key])] or ODD
            parent[key] = rng.choice(kin)
            return tree, f"{key!r} is {parent[key]!r:.60}"
        case "remove":
            del parent[key]
            return tree, f"{key!r} is removed"
        case "rename" if isinstance(parent, dict):
            name = rng.choice(["", "x", "p", "best", "-1", "worst", str(key) + "/mse", "a" * 300, "é<b>", "\ud800"])
            parent[name] = parent.pop(key)
            return tree, f"{key!r} is called {name!r:.60}"
        case "swap":
            other, place = rng.choice(depths)
            parent[key], before = copy.deepcopy(other[place]), parent[key]
            return tree, f"{key!r}, which was {before!r:.40}, is what {place!r} is"
        case "deep":
            depth = rng.choice([1, 5, 29, 40])
            for _ in range(depth):
                parent[key] = [parent[key]] if rng.random() < 0.5 else {"a": parent[key]}
            return tree, f"{key!r} is wrapped {depth} times"
        case "grow" if isinstance(parent[key], list | dict):
            inner = parent[key]
            if isinstance(inner, list):
                inner.extend(copy.deepcopy(inner[:1]) * 3)
            else:
                inner |= {f"{name} ": copy.deepcopy(value) for name, value in list(inner.items())[:2]}
            return tree, f"{key!r} holds some parts again"
        case _:
            parent[key] = str(parent[key])[:1000]
            return tree, f"{key!r} is text"


def several(rng: random.Random, tree: Any) -> tuple[Any, str]:
    """One to three such changes."""
    said = []
    for _ in range(rng.choice([1, 1, 2, 3])):
        tree, what = of_tree(rng, tree)
        said.append(what)
    return tree, "; ".join(said)
