"""Inside the surrogate: gates and slots over the epochs, and the pictures that `attcem explain` made."""

import io
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from attcem.language import ENGLISH, Say
from attcem.report.charts import Chart, Drawing, Grid, axis
from attcem.report.gallery import png_address
from attcem.runs import Setting
from attcem.runs.numbers import ratio
from attcem.runs.settings import Place
from attcem.types import Explanation, Result

ROOM = 1_600_000  # characters of the page that pictures of explanations may take
QUOTED = 8  # so many epochs, from the first to the last, are quoted in numbers
PAGE_DENSITY = 96  # dots per inch of a page at its own size


class Inside(NamedTuple):
    """What is known of one run's defence."""

    name: str
    place: Place
    charts: list[Chart]
    figures: list[tuple[Explanation, str, int, int]]  # each with its address, width and height in pixels of the page
    left_out: bool


def views(settings: Sequence[Setting], say: Say = ENGLISH) -> list[Inside]:
    """The runs that kept something, as long as their pictures fit; of several seeds the first shows its charts."""
    found, room = [], ROOM
    for setting in settings:
        for run in setting.runs:
            charts = histograms(run, say) if run is setting.runs[0] else []
            figures = list(map(figure, run.explanations))
            size = sum(len(address) for _, address, _, _ in figures)
            fits = size <= room
            room -= size if fits else 0
            if charts or figures:
                found.append(Inside(setting.label(run), setting.place, charts, figures if fits else [], not fits))
    return found


def figure(explanation: Explanation) -> tuple[Explanation, str, int, int]:
    """Its picture inside an address, as large as its resolution says it was meant."""
    with Image.open(io.BytesIO(explanation.png), formats=["PNG"]) as picture:
        scale = PAGE_DENSITY / (picture.info.get("dpi", (0, 0))[0] or PAGE_DENSITY)
        width, height = (round(length * scale) for length in picture.size)
    return explanation, png_address(explanation.png), width, height


def histograms(run: Result, say: Say = ENGLISH) -> list[Chart]:
    """How gates and slots were spread in every epoch; a single slot is all there is."""
    return [
        _heat(name.rpartition("/")[2], values, say)
        for name, values in run.diagnostics.items()
        if values.ndim == 2 and values.shape[1] > 1 and np.isfinite(values).any()
    ]


def _heat(name: str, values: np.ndarray, say: Say) -> Chart:
    bins = values.shape[1]
    rows: list[float] = [i + 1 for i in range(bins)]
    hover, yaxis = say("epoch %{{x}}, slot %{{y}}: %{{z:.1%}}"), axis("", dtick=max(1, bins // 8))
    title = say("{name} over training", name=name.replace("_", " "))
    note = say("One column per epoch.")
    if gate := re.fullmatch(r"(.+)_gate_histogram", name):
        rows = [(i + 0.5) / bins for i in range(bins)]
        hover = say("epoch %{{x}}, gate %{{y:.2f}}: %{{z:.1%}}")
        yaxis = axis(say("gate"), range=[0, 1])
        title = say("{name} gate over training", name=gate[1].replace("snr", "SNR"))
        note = say("Where its values lie in each epoch. All at 0 is a penalty that has switched itself off.")
    elif name == "slot_mass":
        yaxis |= axis(say("slot"))
        title = say("Slot usage over training")
        note = say("The share of images that each slot holds. One bright row is a collapse.")
    epochs = list(range(1, len(values) + 1))
    trace = {"type": "heatmap", "x": epochs, "y": rows, "z": np.round(values.T, 3).tolist(), "zmin": 0}
    trace |= {"colorscale": "@heat", "colorbar": {"tickformat": ".0%", "thickness": 10, "len": 1}}
    trace |= {"hovertemplate": hover + "<extra></extra>"}
    few = np.unique(np.linspace(0, len(values) - 1, QUOTED).round().astype(int))
    lines = [[str(at + 1), *(ratio(float(value)) for value in values[at])] for at in few]
    heading = [say("epoch"), *(f"{row:.2f}" if gate else str(row) for row in rows)]
    drawing = Drawing([trace], {"xaxis": axis(say("epoch")), "yaxis": yaxis, "hovermode": "closest"})
    return Chart(title, note, {name: drawing}, Grid(heading, lines), 240)
