"""Names of defences: "noise σ=0.1 + bound λ=16" for a setting, "noise + bound(assign=slot)" for a curve."""

from collections.abc import Collection
from typing import Any

from attcem.runs.config import links, numbers, words
from attcem.types import Result

UNDEFENDED = "no defence"
SYMBOLS = {"sigma": "σ", "lam": "λ", "epsilon": "ε", "eps": "ε", "delta": "δ", "gamma": "γ"}


def short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def show_value(key: str, value: Any) -> str:
    """A setting's value in a few letters: of a digest the first eight."""
    return str(value)[:8] if value and key.endswith("sha256") else short(value)


def with_symbol(key: str, value: Any) -> str:
    """`bound.lam` and 16 → λ=16."""
    option = key.rpartition(".")[2]
    return f"{SYMBOLS.get(option, option)}={short(value)}"


def name_setting(run: Result, shown: Collection[str]) -> str:
    """The links with those of their options that are shown, as symbols: "noise σ=0.1 + bound λ=16"."""
    parts = [
        [link, *(with_symbol(key, value) for key, value in own.items() if f"{link}.{key}" in shown)]
        for link, own in links(run).items()
    ]
    return " + ".join(map(" ".join, parts)) or UNDEFENDED


def name_chain(run: Result, shown: Collection[str]) -> str:
    """The same as a user types it: "noise + bound(assign=slot)"."""
    parts = []
    for link, own in links(run).items():
        listed = ", ".join(f"{key}={short(value)}" for key, value in own.items() if f"{link}.{key}" in shown)
        parts.append(f"{link}({listed})" if listed else link)
    return " + ".join(parts) or UNDEFENDED


def name_run(run: Result) -> str:
    return f"{name_chain(run, {*numbers(run), *words(run)})}, seed {run.seed}"
