"""Slots and clusters: how much of each class they hold, and what is in them."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from attcem.explain import sheet
from attcem.explain.look import Scene, Sight
from attcem.types import Explanation

CELL, PANEL, PLOT = 27, 580, 390
THUMB, GAP = 62, 8
EXAMPLES = 4
UNDECIDED = 0.1  # of the way from belonging to all slots alike to belonging to one
EMPTY = 0.005  # nothing of a class is in a slot to which no image belongs by more
MOST_SLOTS = 12  # columns of example images


def slots(scene: Scene) -> Iterator[Explanation]:
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
    y, k = scene.y[sight.index], resp.shape[2]
    share = {int(c): resp[y == c].mean((0, 1)) for c in np.unique(y)}
    used = {c: effective(row) for c, row in share.items()}
    shown = sheet.chosen_rows(y, lambda c: -used[c])
    table, past = np.stack([share[c] for c in shown]), scene.over_epochs(f"{sight.link}/slot_mass")
    belongs, usual = float(resp.max(2).mean()), float(np.median(list(used.values())))
    what = "A position" if resp.shape[1] > 1 else "An image"
    caption = (
        f"{verdict(usual, belongs, k)} A class uses its {k} slots as if it had {usual:.1f} equal ones. {what} "
        f"belongs to its foremost slot by {belongs:.2f} on average: 1 is certain, {1 / k:.2f} is undecided."
        + sheet.of_how_many(shown, y, "those that use the fewest slots")
    )
    figure = usage_figure([sheet.short(scene.names[c]) for c in shown], table, past)
    return Explanation(f"usage-{sight.link}.png", f"Slot usage of {sight.name}", caption, sheet.png(figure))


def verdict(used: float, belongs: float, slots: int) -> str:
    if used < 1.5:
        return "One slot holds nearly everything: slots add nothing to the class."
    if belongs < UNDECIDED + (1 - UNDECIDED) / slots:
        return "The slots are undecided: they hardly tell images of a class apart, however evenly they are used."
    return "Some slots hold most of a class." if used < 0.6 * slots else "All slots are in use."


def usage_figure(names: list[str], share: Float[np.ndarray, "c k"], epochs: Float[np.ndarray, "e k"] | None) -> Figure:
    rows, k = share.shape
    widths = [PANEL] if epochs is None else [PANEL, PLOT]
    height = 60 + CELL * max(rows, k if epochs is not None else 0)
    figure = sheet.blank(sum(widths), height, layout="constrained")
    panels = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
    most = max(np.nanmax(part) for part in (share, epochs) if part is not None)
    shown = {"vmin": 0, "vmax": most, "cmap": sheet.AMOUNT}
    slots = range(0, k, 1 if k <= 25 else 5)
    numbers = [str(slot + 1) for slot in slots]
    panels[0].imshow(share, **shown)
    panels[0].set(title="share of the class in each slot", xlabel="slot")
    panels[0].set_xticks(slots, numbers)
    panels[0].set_yticks(range(rows), names, color=sheet.INK, fontsize=9.75)
    for (row, slot), part in np.ndenumerate(share) if k <= 12 else ():
        colour = "white" if part > 0.6 * most else sheet.INK
        panels[0].text(slot, row, f"{part:.0%}", fontsize=sheet.SMALL, color=colour, ha="center", va="center")
    if epochs is not None:
        panels[1].imshow(epochs.T, **shown)
        panels[1].set(title="slots over training, all classes", ylabel="slot")
        panels[1].set_yticks(slots, numbers)
        panels[1].set_xticks([0, len(epochs) - 1], ["epoch 1", f"epoch {len(epochs)}"])
    for axes in panels:
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    return figure


def where(scene: Scene, sight: Sight, resp: Float[np.ndarray, "m t k"], grid: tuple[int, int]) -> Explanation:
    y, k = scene.y[sight.index], resp.shape[2]
    shown = sheet.chosen_rows(y, lambda c: float((y == c).sum()))
    pair = 2 * THUMB + 2 + 2 * GAP
    figure, axes = sheet.rows([sheet.short(scene.names[c]) for c in shown], EXAMPLES * pair - 2 * GAP, THUMB + GAP)
    numbers = {slot: f"{slot + 1}{'+' * (slot == MOST_SLOTS - 1 < k - 1)}" for slot in range(min(k, MOST_SLOTS))}
    legend = [sheet.swatch(slot, number) for slot, number in numbers.items()]
    compact = {"ncols": MOST_SLOTS, "handlelength": 1, "columnspacing": 1}
    axes.legend(handles=legend, title="slot", loc="lower center", bbox_to_anchor=(0.5, 1), **compact)
    for row, c in enumerate(shown):
        for column, m in enumerate(np.flatnonzero(y == c)[:EXAMPLES]):
            picture, x, top = scene.x[sight.index[m]], column * pair, row * (THUMB + GAP)
            cover = sheet.kinds(resp[m].argmax(1).reshape(grid)) * [1, 1, 1, 0.65]
            sheet.put_picture(axes, x, top, THUMB, picture)
            sheet.put_picture(axes, x + THUMB + 2, top, THUMB, picture, cover)
    together = np.mean([len(np.unique(row)) for row in resp.argmax(2)])
    title = f"Which slot each position belongs to, {sight.name}"
    caption = (
        "Images of a class beside their positions, coloured by the foremost slot; on average an image shows "
        f"{together:.1f} of {k} slots. Slots that follow shapes have found parts of the object; a single colour means "
        "that the slots do not tell positions apart." + sheet.of_how_many(shown, y, "those with most images")
    )
    return Explanation(f"slots-{sight.link}.png", title, caption, sheet.png(figure))


def typical(scene: Scene, sight: Sight, resp: Float[np.ndarray, "m t k"]) -> Explanation:
    y, belongs = scene.y[sight.index], resp.mean(1)
    k = min(belongs.shape[1], MOST_SLOTS)
    shown = sheet.chosen_rows(y, lambda c: float((y == c).sum()))
    figure, axes = sheet.rows([sheet.short(scene.names[c]) for c in shown], k * (THUMB + GAP) - GAP, THUMB + 26)
    for slot in range(k):
        sheet.put_note(axes, slot * (THUMB + GAP) + THUMB / 2, -14, f"slot {slot + 1}")
    for row, c in enumerate(shown):
        own, top = np.flatnonzero(y == c), row * (THUMB + 26)
        for slot in range(k):
            best, left = own[belongs[own, slot].argmax()], slot * (THUMB + GAP)
            if belongs[best, slot] < EMPTY:
                sheet.put_note(axes, left + THUMB / 2, top + THUMB / 2, "empty")
                continue
            sheet.put_picture(axes, left, top, THUMB, scene.x[sight.index[best]])
            sheet.put_note(axes, left + THUMB / 2, top + THUMB + 9, f"{belongs[best, slot]:.2f}")
    title = f"The most typical image of each slot, {sight.name}"
    caption = (
        "For each slot of a class the image that belongs to it most, and by how much: 1 is entirely, "
        f"{1 / belongs.shape[1]:.2f} is undecided. The same image in many columns means that these slots do not differ."
        + sheet.of_how_many(shown, y, "those with most images")
    )
    return Explanation(f"slots-{sight.link}.png", title, caption, sheet.png(figure))
