"""How settings are written: the links of a defence chain, their names, and dotted keys; light, for help imports it."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Link(NamedTuple):
    """One link of a chain: the name it has there, what it is, and its options."""

    name: str
    kind: str  # a name of `attcem list defences`, or `package.module:Class` for a defence of your own
    options: Mapping[str, Any]


def as_chain(written: Any) -> list[dict[str, Any]]:
    """The one form in which a chain is kept, a list of {kind: options}; a mapping kind → options is read as well.

    >>> as_chain({"noise": {"sigma": 0.1}, "topk": None})
    [{'noise': {'sigma': 0.1}}, {'topk': {}}]
    >>> as_chain(["none"])
    []
    """
    parts = written if isinstance(written, list | tuple) else [written or {}]
    chain = []
    for part in parts:
        if not isinstance(part, Mapping | str):
            raise ValueError(f"defence cannot hold {part!r}: give a list of links, as in [{{noise: {{sigma: 0.1}}}}]")
        links = part if isinstance(part, Mapping) else {part: None}
        chain += [{str(kind): {} if options is None else options} for kind, options in links.items()]
    return [link for link in chain if link != {"none": {}}]


def read_links(written: Any) -> list[Link]:
    """The links of a chain in any form that `as_chain` reads, each under its name."""
    pairs = [pair for link in as_chain(written) for pair in link.items()]
    for kind, options in pairs:
        if not isinstance(options, Mapping):
            raise ValueError(f"defence.{kind} cannot be {options!r}: give its options, as in {{sigma: 0.1}}")
    names = number(kind for kind, _ in pairs)
    return [Link(name, kind, options) for name, (kind, options) in zip(names, pairs, strict=True)]


def number(kinds: Iterable[str]) -> list[str]:
    """A name for every link: the first of a kind is called as the kind, the next ones are counted.

    >>> number(["noise", "mine.defences:KeepLargest", "noise"])
    ['noise', 'keep_largest', 'noise-2']
    """
    seen: Counter[str] = Counter()
    names = []
    for kind in kinds:
        word = snake_case(re.split(r"[:.]", kind)[-1]) if ":" in kind else kind
        seen[word] += 1
        names.append(word if seen[word] == 1 else f"{word}-{seen[word]}")
    return names


def flattened(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys; an empty mapping stays, for it means something: `defence: {}` is no defence.

    >>> flattened({"defence": {"noise": {"sigma": [0.1, 0.3]}}, "seed": 1})
    {'defence.noise.sigma': [0.1, 0.3], 'seed': 1}
    """
    leaves: dict[str, Any] = {}
    for key, value in tree.items():
        nested = isinstance(value, Mapping) and value
        leaves |= flattened(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return leaves


def snake_case(name: str) -> str:
    """A class's name in the spelling of settings.

    >>> snake_case("LocalDP"), snake_case("KeepLargest")
    ('local_dp', 'keep_largest')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
