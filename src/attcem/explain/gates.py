"""Gates: how far they are open now, and how that came about."""

import numpy as np
from matplotlib.ticker import PercentFormatter

from attcem.explain import sheet
from attcem.explain.look import Scene, Sight
from attcem.types import Explanation

BINS = 16
WIDTH, HEIGHT = 500, 200
SHUT, OPEN = 0.1, 0.9


def gates(scene: Scene, sight: Sight) -> Explanation:
    past = {name: scene.over_epochs(f"{sight.link}/{name}_gate_histogram") for name in sight.gates}
    columns = 1 + any(rows is not None for rows in past.values())
    figure = sheet.blank(columns * WIDTH, HEIGHT * len(past), layout="constrained")
    grid = figure.subplots(len(past), columns, squeeze=False)
    said, shut = [], []
    for (now, *before), (name, values) in zip(grid, sight.gates.items(), strict=True):
        mean, each = values.mean(), np.full(len(values), 1 / len(values))
        now.hist(values, BINS, range=(0, 1), weights=each, rwidth=0.93, color=sheet.BLUE)
        now.set_xlim(0, 1)
        now.set_title(f"{name} gate now: {len(values):,} value{'s' * (len(values) > 1)}, mean {mean:.2f}")
        now.set_xticks([0, 0.5, 1], ["0 shut", "0.5", "1 open"])
        now.yaxis.set_major_formatter(PercentFormatter(1, 0))
        if (rows := past[name]) is not None:  # as dark as there are many; grey where the penalty was not on yet
            before[0].imshow(rows.T, sheet.AMOUNT, vmin=0, origin="lower", extent=(0, len(rows), 0, 1))
            before[0].set(title="over training", yticks=[0, 0.5, 1], yticklabels=["0", "0.5", "1"])
            before[0].set_xticks([0.5, len(rows) - 0.5], ["epoch 1", f"epoch {len(rows)}"])
        elif before:
            before[0].set_visible(False)
        said.append(
            f"{name} gate: mean {mean:.2f}, {(values < SHUT).mean():.0%} of it under {SHUT}, "
            f"{(values > OPEN).mean():.0%} over {OPEN}"
        )
        shut += [name] if mean < SHUT else []
    warning = (
        f"Nearly shut: the {' and the '.join(shut)} gate. The penalty stays small whatever the latent tells."
        if shut
        else "Watch for a gate that drifts to 0: the penalty then falls while the latent leaks as before."
    )
    meaning = "A gate multiplies what it guards: at 0 that is left out of the penalty, at 1 it counts in full."
    caption = f"{meaning} {'; '.join(said)}. {warning}"
    return Explanation(f"gates-{sight.link}.png", f"Gates of {sight.name}", caption, sheet.png(figure))
