"""Gates: how far they are open now, and how that came about."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attcem.explain.canvas import Canvas
from attcem.explain.colours import BLUE, SOFT, amount
from attcem.explain.look import Scene, Sight
from attcem.types import Explanation

BINS = 16
WIDTH, HEIGHT, ROW, TOP, LEFT, BETWEEN = 440, 130, 215, 42, 30, 70
SHUT, OPEN = 0.1, 0.9


def gates(scene: Scene) -> Iterator[Explanation]:
    """One picture for each surrogate that has gates."""
    for sight in scene.sights:
        if sight.gates:
            yield explained(scene, sight)


def explained(scene: Scene, sight: Sight) -> Explanation:
    """A row for every gate: its values now, and over the epochs of training if they were logged."""
    past = {name: scene.over_epochs(f"{sight.link}/{name}_gate_histogram") for name in sight.gates}
    logged = any(rows is not None for rows in past.values())
    sheet = Canvas(LEFT + WIDTH + (BETWEEN + WIDTH if logged else 0) + 10, ROW * len(sight.gates))
    for row, (name, values) in enumerate(sight.gates.items()):
        top = row * ROW + TOP
        histogram(sheet, top, name, values)
        rows = past[name]
        if rows is not None:
            history(sheet, top, rows)
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
        png=sheet.png(),
    )


def words(name: str, values: Float[np.ndarray, " g"]) -> str:
    """A gate in numbers."""
    return (
        f"{name} gate: mean {values.mean():.2f}, {(values < SHUT).mean():.0%} of it under {SHUT}, "
        f"{(values > OPEN).mean():.0%} over {OPEN}"
    )


def histogram(sheet: Canvas, top: float, name: str, values: Float[np.ndarray, " g"]) -> None:
    """Shares of the values in equal bins between 0 and 1."""
    counted, _ = np.histogram(values, BINS, (0, 1))
    share = counted / len(values)
    sheet.text(
        LEFT, top - 28, f"{name} gate now: {len(values):,} value{'s' * (len(values) > 1)}, mean {values.mean():.2f}"
    )
    for place, part in enumerate(share):
        tall = HEIGHT * part / share.max()
        sheet.box(LEFT + place * WIDTH / BINS + 1, top + HEIGHT - tall, WIDTH / BINS - 2, tall, BLUE)
    sheet.line(LEFT, top + HEIGHT, LEFT + WIDTH, top + HEIGHT, SOFT)
    peak = int(share.argmax())
    sheet.note(LEFT + (peak + 0.5) * WIDTH / BINS, top - 8, f"{share[peak]:.0%}", anchor="mm")
    for share_across, text, anchor in ((0.0, "0 shut", "lm"), (0.5, "0.5", "mm"), (1.0, "1 open", "rm")):
        sheet.note(LEFT + share_across * WIDTH, top + HEIGHT + 13, text, anchor)


def history(sheet: Canvas, top: float, rows: Float[np.ndarray, "e b"]) -> None:
    """Epochs across, values upwards, as dark as there are many; grey where the penalty was not on yet."""
    left = LEFT + WIDTH + BETWEEN
    sheet.text(left, top - 28, "over training")
    sheet.heat(left, top, WIDTH, HEIGHT, amount((rows / np.nanmax(rows)).T[::-1]))
    for place, text in ((0.0, "1"), (0.5, "0.5"), (1.0, "0")):
        sheet.note(left - 8, top + place * HEIGHT, text, anchor="rm")
    sheet.note(left, top + HEIGHT + 13, "epoch 1")
    sheet.note(left + WIDTH, top + HEIGHT + 13, f"epoch {len(rows)}", anchor="rm")
