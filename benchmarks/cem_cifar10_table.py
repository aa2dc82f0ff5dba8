"""Renders results/cem_cifar10 as docs/results.md and its figure; what is written outside the markers is kept."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from markupsafe import Markup

from attcem.report.numbers import is_number, mean, spread
from attcem.report.settings import defences, differences
from benchmarks.cem_cifar10 import GRID, RESULTS
from benchmarks.svg import Frame, axes, span, tag, ticks

PAGE, FIGURE = Path("docs/results.md"), Path("docs/images/cem-cifar10.svg")
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"
REFERENCE = {"none": "no defence", "noise": "plain noise"}
NOTES = {  # part of a flag → its short words; a flag without any is quoted
    "cut short": "attack cut short",
    "was shut off": "shut off",
    "worse than the mean image": "attack failed",
    "barely break": "attack too weak",
    "near chance": "near chance",
    "its penalty fell": "deceives itself",
    "stays an upper bound": "still a bound",
}
SHAPES = ("M-5 0a5 5 0 1 1 0 .1z", "M-4-4h8v8h-8z", "M0-6L5 4H-5z", "M0-6l5 6-5 6-5-6z", "M0 6L5-4H-5z")
DASHES = ("none", "7 3", "2 3", "9 3 2 3", "1 5")
STYLE = """.reference .line { stroke-width: 4; opacity: 0.6 } .hollow .marker { paint-order: normal }
svg { --paper: #fcfcfa; --ink: #1c1d1f; --soft: #5a5d63; --rule: #e2e2dc; --hue: #8b8e94; font: 12.5px sans-serif }
.of0{--hue:#0072b2} .of1{--hue:#d55e00} .of2{--hue:#009e73} .of3{--hue:#b5508f} .of4{--hue:#a67c00} .of5{--hue:#35a7dd}
@media (prefers-color-scheme: dark) { svg { --paper: #16181b; --ink: #e9e9e6; --soft: #a6a9af; --rule: #2c3035 }
.of0{--hue:#4ea5ea} .of1{--hue:#ff8544} .of2{--hue:#2cc796} .of3{--hue:#e48fc4} .of4{--hue:#e0b93a} .of5{--hue:#9bdcff}}
text { fill: var(--soft) } .label { fill: var(--ink) } .paper { fill: var(--paper) } .grid { stroke: var(--rule) }
.axis, .mark { stroke: var(--soft) } .mark { stroke-dasharray: 3 3 } .whisker { stroke: var(--hue); opacity: 0.55 }
.line { fill: none; stroke: var(--hue) } .line, .marker { stroke-width: 1.8 }
.marker{fill:var(--hue);stroke:var(--paper);paint-order:stroke} .hollow .marker{fill:var(--paper);stroke:var(--hue)}
"""


class Entry(NamedTuple):
    """One row of the grid at one strength: its runs, and of each of them accuracy and worst MSE."""

    row: str
    strength: str
    runs: list[dict[str, Any]]
    accuracy: list[float]
    mse: list[float]


def read(folder: Path, grid: dict[str, dict[str, Any]] = GRID) -> list[Entry]:
    """Every result of the folder: rows in the order of the grid, weak before strong."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        found.setdefault(path.stem.rpartition("-s")[0], []).append(json.loads(path.read_text()))
    names = {f"{row}-{strength}": (row, strength) for row in grid for strength in sorted(grid[row], key=float)}
    if not found or found.keys() - names:
        raise ValueError(f"{folder} is empty, or has what the grid does not name: {sorted(found.keys() - names)}")
    return [
        Entry(*names[name], runs, [run["accuracy"] for run in runs], [run["worst"]["mse"]["mean"] for run in runs])
        for name in names
        if (runs := found.get(name))
    ]


def noise_at(accuracy: float, entries: Sequence[Entry]) -> float:
    """The MSE of plain noise at this accuracy, between no defence and its strengths; the highest if met twice."""
    met = []
    points = [(mean(entry.accuracy), mean(entry.mse)) for entry in entries if entry.row in REFERENCE]
    for (here, mse), (there, next_mse) in pairwise(points):
        if min(here, there) <= accuracy <= max(here, there):
            share = (accuracy - here) / (there - here) if there != here else float(next_mse > mse)
            met.append(mse + share * (next_mse - mse))
    return max(met, default=math.nan)


def table(entries: Sequence[Entry], usual: int, known: set[str]) -> Iterator[str]:
    yield "| defence | strength | accuracy | worst MSE | SSIM | noise at this accuracy | gain | falls alone | notes |"
    yield "|" + "---|" * 9
    for entry in entries:
        plain = math.nan if entry.row in REFERENCE else noise_at(mean(entry.accuracy), entries)
        alone, seeds = mean([run.get("surrogate_only") for run in entry.runs]), len(entry.runs)
        seen = Counter(note for run in entry.runs for note in notes(run) - known)
        words = [note if often == seeds else f"{note} ({often} of {seeds})" for note, often in sorted(seen.items())]
        cells = [
            REFERENCE.get(entry.row, entry.row),
            {"none": "", "noise": f"σ = {entry.strength}"}.get(entry.row, f"λ = {entry.strength}"),
            with_spread(entry.accuracy, 3),
            with_spread(entry.mse, 4),
            f"{mean([run['worst']['ssim']['mean'] for run in entry.runs]):.3f}",
            f"{plain:.4f}" if is_number(plain) else "",
            f"×{mean(entry.mse) / plain:.2f}" if is_number(plain) else "",
            f"{alone:.0%}" if is_number(alone) else "",
            ", ".join(words + [f"n = {seeds}"] * (seeds < usual)),
        ]
        yield f"| {' | '.join(cells)} |"


def with_spread(values: Sequence[float], digits: int) -> str:
    deviation = spread(values)
    return f"{mean(values):.{digits}f}" + (f" ± {deviation:.{digits}f}" if is_number(deviation) else "")


def notes(run: dict[str, Any]) -> set[str]:
    return {next((NOTES[part] for part in NOTES if part in flag), flag) for flag in run["flags"]}


def introduction(runs: Sequence[dict[str, Any]], seeds: int, known: set[str], free: float) -> list[str]:
    """What was reduced and how to read the columns, with its numbers out of the results."""
    config, cost = runs[0]["config"], runs[0]["cost"]
    model, train, audit = config["model"], config["train"], config["audit"]
    sigmas = {f"{links['noise']['sigma']:g}" for run in runs if len(links := defences(run["config"])) > 1}
    mixed = sorted({line for run in runs for line in differences(run["config"], config)})
    reduced = f"""**Reduced to what two cores can afford.** The documents train the full width for 240 epochs and attack
    with the suite `standard`. Here {model["backbone"]}, cut {model["cut"]}, {model["bottleneck"]["channels"]} channels
    sent, has {model["width"]:g} of the width ({(cost["params_device"] + cost["params_cloud"]) / 1e6:.2f} M weights) and
    trains {train["epochs"]} epochs of the recipe `{train["recipe"]}`; {" and ".join(runs[0]["attacks"])} (the suite
    `{audit["suite"]}`) attack {audit["images"]:,} test images of {config["data"]["name"]}. Compare rows: a patient
    attacker gets closer than any MSE here. {f"In every run: {', '.join(sorted(known))}." if known else ""}
    {f"**Not like for like:** {'; '.join(mixed)}." if mixed else ""}"""
    columns = f"""Seeds: {seeds} unless the notes say otherwise; ± is their sample standard deviation. Weights λ are
    a coarse grid, not tuned: LOG.md says how they were set; beside them noise of
    σ = {" or ".join(sorted(sigmas)) or "–"}. The mean image, the free attack, has an MSE of {free:.4f}.
    *Noise at this accuracy*: the MSE of plain noise there, on straight lines between no defence and its strengths,
    blank beyond; *gain*: the worst MSE over it. *Falls alone*: how far the penalty fell when only its own parameters
    were trained, not the encoder."""
    return [fill(" ".join(text.split()), 120, break_on_hyphens=False) for text in (reduced, columns)]


def figure(entries: Sequence[Entry], free: float) -> str:
    """Accuracy over worst MSE: a line per row through its strengths, hue by family, a marker of its own for each."""
    x_ticks = ticks(0, max(free, *(reach(entry.mse)[1] for entry in entries)), about=7)
    y_ticks = ticks(*(span(edge for entry in entries for edge in reach(entry.accuracy)) or (0, 1)), about=6)
    frame = Frame((0, x_ticks[-1]), (y_ticks[0], y_ticks[-1]), 800, 500, left=56, right=170, top=52, bottom=48)
    parts = [tag("style", Markup(STYLE)), tag("rect", class_="paper", width=800, height=500, rx=8)]
    parts += axes(frame, x_ticks, y_ticks, "worst-case MSE: further right hides more →")
    parts.append(tag("text", "accuracy ↑", x=18, y=frame.top - 22))
    at, y = frame.across(free), frame.top + 4.0
    parts.append(tag("line", class_="mark", x1=at, x2=at, y1=y - 10, y2=frame.up(y_ticks[0])))
    parts.append(tag("text", "mean image", x=at, y=y - 16, text_anchor="middle"))
    rows = {row: [entry for entry in entries if entry.row == row] for row in dict.fromkeys(e.row for e in entries)}
    plain = [entry for row in REFERENCE for entry in rows.pop(row, [])]
    parts += [curve(frame, plain, "reference", "9 6", SHAPES[0], y)] if plain else []
    families = [row.partition("-")[0] for row in rows]
    for number, (family, members) in enumerate(zip(families, rows.values(), strict=True)):
        y += 21 if family in families[:number] else 30
        style = f"of{list(dict.fromkeys(families)).index(family) % 6}" + " hollow" * (number // len(SHAPES) % 2)
        dash = DASHES[families[:number].count(family) % len(DASHES)]
        parts.append(curve(frame, members, style, dash, SHAPES[number % len(SHAPES)], y))
    return str(tag("svg", Markup("").join(parts), xmlns="http://www.w3.org/2000/svg", viewBox="0 0 800 500")) + "\n"


def curve(frame: Frame, entries: Sequence[Entry], style: str, dash: str, shape: str, y: float) -> Markup:
    """Whiskers, line and markers of a row, and its name beside the plot at height y."""
    x, parts = frame.width - frame.right + 24.0, []
    spots = [(frame.across(mean(entry.mse)), frame.up(mean(entry.accuracy))) for entry in entries]
    for entry, (across, up) in zip(entries, spots, strict=True):
        (left, right), (low, high) = map(frame.across, reach(entry.mse)), map(frame.up, reach(entry.accuracy))
        parts.append(tag("line", class_="whisker", x1=left, x2=right, y1=up, y2=up))
        parts.append(tag("line", class_="whisker", x1=across, x2=across, y1=low, y2=high))
        if entry.row == "none":
            parts.append(tag("text", "no defence", x=across - 6, y=up - 11))
    for line in (spots, [(x, y), (x + 36, y)]):
        points = " ".join(f"{across:.1f},{up:.1f}" for across, up in line)
        parts.append(tag("polyline", class_="line", points=points, stroke_dasharray=dash))
    for across, up in [*spots, (x + 18, y)]:
        parts.append(tag("path", class_="marker", d=shape, transform=f"translate({across:.1f} {up:.1f})"))
    parts.append(tag("text", REFERENCE.get(entries[-1].row, entries[-1].row), class_="label", x=x + 45, y=y + 4))
    return tag("g", Markup("").join(parts), class_=style)


def reach(values: Sequence[float]) -> tuple[float, float]:
    middle, deviation = mean(values), spread(values)
    return (middle - deviation, middle + deviation) if is_number(deviation) else (middle, middle)


def render(root: Path = Path(), grid: dict[str, dict[str, Any]] = GRID) -> tuple[str, str]:
    """The page, with everything that was written by hand, and the figure."""
    entries, page = read(root / RESULTS, grid), root / PAGE
    runs = [run for entry in entries for run in entry.runs]
    free = mean([run["baselines"]["mean_image"]["mse"]["mean"] for run in runs])
    seeds, known = max(len(entry.runs) for entry in entries), set.intersection(*map(notes, runs))
    before = page.read_text() if page.exists() else f"# Results: CIFAR-10 on two cores\n\n{BEGIN}\n{END}\n"
    above, begin, rest = before.partition(BEGIN)
    _, end, below = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{page} has lost its markers: what is generated stands between {BEGIN} and {END}")
    image = f"![Accuracy over worst-case MSE, a line per defence]({FIGURE.relative_to(PAGE.parent)})"
    made = [BEGIN, *introduction(runs, seeds, known, free), image, "\n".join(table(entries, seeds, known)), END]
    return above + "\n\n".join(made) + below, figure(entries, free)


if __name__ == "__main__":
    for file, content in zip((PAGE, FIGURE), render(), strict=True):
        file.write_text(content)
