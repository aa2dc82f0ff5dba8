"""Gates: how far they are open now, and how that came about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from attcem.explain import sheet
from attcem.explain.look import Scene, Sight
from attcem.types import Explanation

BINS = 16
WIDTH, HEIGHT = 500, 200
SHUT, OPEN = 0.1, 0.9


def gates(scene: Scene) -> Iterator[Explanation]:
    """One picture for each surrogate that has gates."""
    for sight in scene.sights:
        if sight.gates:
            yield explained(scene, sight)


def explained(scene: Scene, sight: Sight) -> Explanation:
    """A row for every gate: its values now, and over the epochs of training if they were logged."""
    past = {name: scene.over_epochs(f"{sight.link}/{name}_gate_histogram") for name in sight.gates}
    columns = 1 + any(rows is not None for rows in past.values())
    figure = sheet.blank(columns * WIDTH, HEIGHT * len(past), layout="constrained")
    for axes, (name, values) in zip(
        figure.subplots(len(past), columns, squeeze=False), sight.gates.items(), strict=True
    ):
        draw_now(axes[0], name, values)
        if (rows := past[name]) is not None:
            draw_past(axes[1], rows)
        elif columns > 1:
            axes[1].set_visible(False)
    shut = [name for name, values in sight.gates.items() if values.mean() < SHUT]
    return Explanation(
        file=f"gates-{sight.link}.png",
        title=f"Gates of {sight.name}",
        caption="A gate multiplies what it guards: at 0 that is left out of the penalty, at 1 it counts in full. "
        + "; ".join(words(name, values) for name, values in sight.gates.items())
        + ". "
        + (
            f"Nearly shut: the {' and the '.join(shut)} gate. The penalty stays small whatever the latent tells."
            if shut
            else "Watch for a gate that drifts to 0: the penalty then falls while the latent leaks as before."
        ),
        png=sheet.png(figure),
    )


def words(name: str, values: Float[np.ndarray, " g"]) -> str:
    """A gate in numbers."""
    return (
        f"{name} gate: mean {values.mean():.2f}, {(values < SHUT).mean():.0%} of it under {SHUT}, "
        f"{(values > OPEN).mean():.0%} over {OPEN}"
    )


def draw_now(axes: Axes, name: str, values: Float[np.ndarray, " g"]) -> None:
    """Shares of the values in equal bins between 0 and 1."""
    axes.hist(values, BINS, range=(0, 1), weights=np.full(len(values), 1 / len(values)), rwidth=0.93, color=sheet.BLUE)
    axes.set_xlim(0, 1)
    axes.set_title(f"{name} gate now: {len(values):,} value{'s' * (len(values) > 1)}, mean {values.mean():.2f}")
    axes.set_xticks([0, 0.5, 1], ["0 shut", "0.5", "1 open"])
    axes.yaxis.set_major_formatter(PercentFormatter(1, 0))


def draw_past(axes: Axes, rows: Float[np.ndarray, "e b"]) -> None:
    """Epochs across, values upwards, as dark as there are many; grey where the penalty was not on yet."""
    axes.imshow(rows.T, sheet.AMOUNT, vmin=0, origin="lower", extent=(0, len(rows), 0, 1))
    axes.set(title="over training", yticks=[0, 0.5, 1], yticklabels=["0", "0.5", "1"])
    axes.set_xticks([0.5, len(rows) - 0.5], ["epoch 1", f"epoch {len(rows)}"])
