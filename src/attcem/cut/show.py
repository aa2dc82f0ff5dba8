"""The places in a table and in a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attcem.cut.candidates import Candidate
from attcem.cut.choose import DRAWS
from attcem.figures.style import PAGE, Entry, blank, encoded, look, styled, with_legend
from attcem.files import write_atomically
from attcem.runs.numbers import MISSING, mean_and_spread, ratio, scientific, share

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS: Mapping[str, Callable[[Candidate], str]] = {
    "cut": lambda one: f"{one.place.cut} {one.place.unit}",
    "crosses": lambda one: one.place.form,
    "accuracy": lambda one: mean_and_spread(one.values("accuracy"), ratio),
    "MSE ÷ mean image": lambda one: mean_and_spread(one.values("mse_ratio"), ratio),
    "SSIM": lambda one: mean_and_spread(one.values("ssim"), ratio),
    "device": lambda one: f"{scientific(one.mean('multiplications') / 1e6)} M, {share(one.mean('device_share'))}",
    "bytes": lambda one: str(one.seeds[0].bytes),
    "radius": lambda one: scientific(one.mean("radius")),
    "inside": lambda one: ratio(one.mean("inside")),
    "nats": lambda one: scientific(one.mean("rate_nats")),
}
LEAST = 0.005  # places that win less often than this are not called rivals


def table(candidates: Sequence[Candidate], best: Candidate, shares: Mapping[str, float]) -> list[str]:
    """A line for each place, the recommended one first marked, and how often each would have been taken."""
    rows = [[*COLUMNS, "taken"]]
    for one in candidates:
        won = shares.get(one.place.name)
        taken = "too dear" if won is None else share(won) if won >= LEAST else MISSING
        rows.append([*(cell(one) for cell in COLUMNS.values()), taken + " ← recommended" * (one is best)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def advise(best: Candidate, shares: Mapping[str, float]) -> list[str]:
    """Which place to take, how sure that is, and what stands against it."""
    others = [(won, name) for name, won in shares.items() if name != best.place.name and won >= LEAST]
    others.sort(key=lambda other: -other[0])
    said = ", ".join(f"{name} in {share(won)}" for won, name in others) or "no other place"
    seeds = len(best.seeds)
    lines = [
        f"recommended   --model.cut {best.place.cut}, {best.place.form} (after {best.place.unit})",
        f"how sure      taken in {share(shares[best.place.name])} of {DRAWS:,} draws of seeds and images; else {said}",
    ]
    doubt = "one seed: another training may give another answer, and that is not counted; add --seeds 0 1 2"
    return lines if seeds > 1 else [*lines, f"              {doubt}"]


def draw(candidates: Sequence[Candidate], best: Candidate, path: Path) -> Path:
    """Accuracy over what is hidden; then, along the network, what is hidden and how far classes have collapsed."""
    forms = {form: look(number) for number, form in enumerate(dict.fromkeys(one.place.form for one in candidates))}
    with styled():
        figure = blank(PAGE, 2.6)
        tradeoff, hidden, collapsed = figure.subplots(1, 3)
        for form, its in forms.items():
            own = [one for one in candidates if one.place.form == form]
            cuts = [one.place.cut for one in own]
            accuracy, mse, inside = ([one.mean(name) for one in own] for name in ("accuracy", "mse_ratio", "inside"))
            tradeoff.plot(mse, accuracy, **its.line)
            hidden.plot(cuts, mse, **its.line)
            collapsed.plot(cuts, inside, **its.line)
            for cut, x, y in zip(cuts, mse, accuracy, strict=True):
                tradeoff.annotate(str(cut), (x, y), xytext=(3, 3), textcoords="offset points", fontsize=5)
        circle(tradeoff, best.mean("mse_ratio"), best.mean("accuracy"))
        circle(hidden, best.place.cut, best.mean("mse_ratio"))
        circle(collapsed, best.place.cut, best.mean("inside"))
        tradeoff.set(xlabel="worst MSE ÷ mean image's", ylabel="accuracy")
        hidden.set(xlabel="cut", ylabel="worst MSE ÷ mean image's")
        collapsed.set(xlabel="cut", ylabel="share of variance inside classes")
        for plot in (hidden, collapsed):
            plot.xaxis.get_major_locator().set_params(integer=True)
            plot.set_ylim(bottom=0)
        with_legend(figure, [Entry(form, its.line) for form, its in forms.items()])
        return write_atomically(path, encoded(figure, path.suffix[1:]))


def circle(plot: Axes, x: float, y: float) -> None:
    plot.plot([x], [y], marker="o", markersize=10, markerfacecolor="none", color="black", linestyle="none")
