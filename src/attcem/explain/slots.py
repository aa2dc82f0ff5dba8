"""Slots and clusters: how much of each class they hold, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attcem.explain.canvas import Canvas
from attcem.explain.colours import INK, PAPER, amount, colour_of, kinds
from attcem.explain.look import Scene, Sight
from attcem.explain.rows import NAME, chosen_rows, name_row, of_how_many, tinted
from attcem.types import Explanation

CELL, HEAD, PANEL, PLOT = 27, 50, 440, 330
THUMB, GAP = 62, 8
EXAMPLES = 4
UNDECIDED = 0.1
"""Of the way from belonging to all slots alike to belonging to one."""
EMPTY = 0.005
"""Nothing of a class is in a slot to which no image belongs by more."""
MOST_SLOTS = 12
"""Columns of example images."""


def slots(scene: Scene) -> Iterator[Explanation]:
    """Two pictures for each surrogate that shares images or positions out: how much, and which."""
    for sight in scene.sights:
        if sight.resp is not None:
            yield usage(scene, sight, sight.resp)
            grid = scene.grid(sight.resp.shape[1])
            yield where(scene, sight, sight.resp, grid) if grid else typical(scene, sight, sight.resp)


def effective(share: Float[np.ndarray, " k"]) -> float:
    """How many slots, equally used, have the same entropy.

    >>> effective(np.array([0.5, 0.5, 0.0, 0.0]))
    2.0
    """
    return round(float(np.exp(-(share * np.log(np.maximum(share, 1e-300))).sum())), 6)


def usage(scene: Scene, sight: Sight, resp: Float[np.ndarray, "m t k"]) -> Explanation:
    """Classes × slots: each slot's share of the class; and over the epochs of training, if they were logged."""
    y, k = scene.y[sight.index], resp.shape[2]
    share = {int(c): resp[y == c].mean((0, 1)) for c in np.unique(y)}
    used = {c: effective(row) for c, row in share.items()}
    shown = chosen_rows(y, lambda c: -used[c])
    sheet = usage_sheet(scene, np.stack([share[c] for c in shown]), shown, scene.over_epochs(f"{sight.link}/slot_mass"))
    belongs, usual = float(resp.max(2).mean()), float(np.median(list(used.values())))
    what = "A position" if resp.shape[1] > 1 else "An image"
    return Explanation(
        file=f"usage-{sight.link}.png",
        title=f"Slot usage of {sight.name}",
        caption=f"{verdict(usual, belongs, k)} A class uses its {k} slots as if it had {usual:.1f} equal ones. {what} "
        f"belongs to its foremost slot by {belongs:.2f} on average: 1 is certain, {1 / k:.2f} is undecided."
        + of_how_many(shown, y, "those that use the fewest slots"),
        png=sheet.png(),
    )


def verdict(used: float, belongs: float, slots: int) -> str:
    """What the numbers mean for the penalty."""
    if used < 1.5:
        return "One slot holds nearly everything: slots add nothing to the class."
    if belongs < UNDECIDED + (1 - UNDECIDED) / slots:
        return "The slots are undecided: they hardly tell images of a class apart, however evenly they are used."
    return "Some slots hold most of a class." if used < 0.6 * slots else "All slots are in use."


def usage_sheet(
    scene: Scene, share: Float[np.ndarray, "c k"], shown: list[int], epochs: Float[np.ndarray, "e k"] | None
) -> Canvas:
    """The heat maps, side by side."""
    rows, k = share.shape
    height = max(rows, k if epochs is not None else 0) * CELL
    side = NAME + PANEL + 60
    sheet = Canvas(NAME + PANEL if epochs is None else side + PLOT, HEAD + height + 24)
    sheet.text(0, 10, "share of the class in each slot")
    cells(sheet, NAME, share)
    for row, c in enumerate(shown):
        name_row(sheet, HEAD + (row + 0.5) * CELL, scene.names[c])
    if epochs is not None:
        sheet.text(side, 10, "slots over training, all classes")
        sheet.heat(side, HEAD, PLOT, k * CELL, amount(epochs.T / max(np.nanmax(share), np.nanmax(epochs))))
        for slot in range(k):
            sheet.note(side - 8, HEAD + (slot + 0.5) * CELL, str(slot + 1), anchor="rm")
        sheet.note(side, HEAD + k * CELL + 12, "epoch 1")
        sheet.note(side + PLOT, HEAD + k * CELL + 12, f"epoch {len(epochs)}", anchor="rm")
    return sheet


def cells(sheet: Canvas, left: float, share: Float[np.ndarray, "c k"]) -> None:
    """Shares as colours and, where there is room, as numbers."""
    rows, k = share.shape
    width = PANEL / k
    sheet.heat(left, HEAD, PANEL, rows * CELL, amount(share / share.max()))
    sheet.note(left - 12, HEAD - 12, "slot", anchor="rm")
    for slot in range(k):
        if width >= 16 or slot % 5 == 0:
            sheet.note(left + (slot + 0.5) * width, HEAD - 12, str(slot + 1), anchor="mm")
        for row in range(rows if width >= 32 else 0):
            colour = PAPER if share[row, slot] > 0.75 * share.max() else INK
            at = left + (slot + 0.5) * width, HEAD + (row + 0.5) * CELL
            sheet.text(*at, f"{share[row, slot]:.0%}", size=11, colour=colour, anchor="mm")


def where(scene: Scene, sight: Sight, resp: Float[np.ndarray, "m t k"], grid: tuple[int, int]) -> Explanation:
    """A few images of each class beside the slots of their positions."""
    y, k = scene.y[sight.index], resp.shape[2]
    shown = chosen_rows(y, lambda c: float((y == c).sum()))
    pair = 2 * THUMB + 2 + 2 * GAP
    sheet = Canvas(NAME + EXAMPLES * pair - 2 * GAP, HEAD + len(shown) * (THUMB + GAP))
    for slot in range(min(k, MOST_SLOTS)):
        sheet.box(NAME + slot * 44, 4, 14, 14, colour_of(slot))
        sheet.note(NAME + slot * 44 + 18, 11, f"{slot + 1}" + ("+" if slot == MOST_SLOTS - 1 < k - 1 else ""))
    sheet.text(0, 11, "slot")
    for row, c in enumerate(shown):
        top = HEAD - 16 + row * (THUMB + GAP)
        name_row(sheet, top + THUMB / 2, scene.names[c])
        for column, m in enumerate(np.flatnonzero(y == c)[:EXAMPLES]):
            picture, left = scene.x[sight.index[m]], NAME + column * pair
            first = resp[m].argmax(1).reshape(grid)
            sheet.picture(left, top, THUMB, picture)
            sheet.picture(left + THUMB + 2, top, THUMB, tinted(picture, kinds(first), np.full(grid, 0.65)))
    together = np.mean([len(np.unique(row)) for row in resp.argmax(2)])
    return Explanation(
        file=f"slots-{sight.link}.png",
        title=f"Which slot each position belongs to, {sight.name}",
        caption="Images of a class beside their positions, coloured by the foremost slot; on average an image shows "
        f"{together:.1f} of {k} slots. Slots that follow shapes have found parts of the object; a single colour means "
        "that the slots do not tell positions apart." + of_how_many(shown, y, "those with most images"),
        png=sheet.png(),
    )


def typical(scene: Scene, sight: Sight, resp: Float[np.ndarray, "m t k"]) -> Explanation:
    """The image that belongs most to each slot of each class."""
    y, belongs = scene.y[sight.index], resp.mean(1)
    k = min(belongs.shape[1], MOST_SLOTS)
    shown = chosen_rows(y, lambda c: float((y == c).sum()))
    sheet = Canvas(NAME + k * (THUMB + GAP) - GAP, HEAD - 16 + len(shown) * (THUMB + 26))
    for slot in range(k):
        sheet.note(NAME + slot * (THUMB + GAP) + THUMB / 2, 14, f"slot {slot + 1}", anchor="mm")
    for row, c in enumerate(shown):
        own, top = np.flatnonzero(y == c), HEAD - 20 + row * (THUMB + 26)
        name_row(sheet, top + THUMB / 2, scene.names[c])
        for slot in range(k):
            best, left = own[belongs[own, slot].argmax()], NAME + slot * (THUMB + GAP)
            if belongs[best, slot] < EMPTY:
                sheet.note(left + THUMB / 2, top + THUMB / 2, "empty", anchor="mm")
                continue
            sheet.picture(left, top, THUMB, scene.x[sight.index[best]])
            sheet.note(left + THUMB / 2, top + THUMB + 9, f"{belongs[best, slot]:.2f}", anchor="mm")
    return Explanation(
        file=f"slots-{sight.link}.png",
        title=f"The most typical image of each slot, {sight.name}",
        caption="For each slot of a class the image that belongs to it most, and by how much: 1 is entirely, "
        f"{1 / belongs.shape[1]:.2f} is undecided. The same image in many columns means that these slots do not differ."
        + of_how_many(shown, y, "those with most images"),
        png=sheet.png(),
    )
