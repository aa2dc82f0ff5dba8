"""Attention inside each class: how unevenly it is spread, and on which images."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float, Int64, UInt8

from attcem.explain.canvas import Canvas
from attcem.explain.colours import STRONGEST, doublings, more_or_less
from attcem.explain.look import Scene, Sight
from attcem.explain.rows import NAME, chosen_rows, name_row, of_how_many, tinted
from attcem.types import Explanation

EACH = 4
"""Images that weigh most, and as many that weigh least."""
THUMB, GAP, STRIP, HEAD = 68, 8, 250, 58
ROW = THUMB + 30


def attention(scene: Scene) -> Iterator[Explanation]:
    """One picture for each surrogate that weighs the images of a class."""
    for sight in scene.sights:
        if sight.weight is not None:
            yield explained(scene, sight, sight.weight)


def explained(scene: Scene, sight: Sight, weight: Float[np.ndarray, "m t"]) -> Explanation:
    """Rows of classes, and in words how uneven the weights are."""
    y, of_image = scene.y[sight.index], weight.mean(1)
    members = {int(c): ranked(of_image, y == c) for c in np.unique(y)}
    half = {c: half_of(of_image[order]) for c, order in members.items()}
    even = {c: half[c] / (len(order) / 2) for c, order in members.items()}
    shown = chosen_rows(y, lambda c: -even[c])
    narrowest = min(shown, key=lambda c: even[c])
    middle = float(np.median(list(even.values())))
    if middle < 0.5:
        verdict = "Attention is on few images: the penalty sees mostly these, and the others leak unseen."
    elif middle < 0.9:
        verdict = "Attention prefers some images: the penalty sees these more than the others."
    else:
        verdict = "Attention is nearly even: the penalty sees all images of a class about alike."
    return Explanation(
        file=f"attention-{sight.link}.png",
        title=f"Attention of {sight.name}",
        caption=f"{verdict} In {scene.names[narrowest]}, the most uneven class, half of the weight rests on "
        f"{half[narrowest]} of {len(members[narrowest])} images (even would be "
        f"{np.ceil(len(members[narrowest]) / 2):.0f}). "
        "A strip holds all images of a class, heaviest first: orange weighs more than an equal share, blue less; ×2 is "
        "twice an equal share. In training, shares are taken inside a batch; here, over all images of the class."
        + (positions(weight) if scene.grid(weight.shape[1]) else "")
        + of_how_many(shown, y, "those whose attention is most uneven"),
        png=drawn(scene, sight, weight, {c: members[c] for c in shown}, half),
    )


def positions(weight: Float[np.ndarray, "m t"]) -> str:
    """A sentence on where in the images the weight is."""
    share = np.mean([half_of(np.sort(row)[::-1]) for row in weight]) / weight.shape[1]
    return (
        " On an image, orange positions weigh more than its others, blue ones less: half of an image's weight is on "
        f"{share:.0%} of its positions on average."
    )


def ranked(of_image: Float[np.ndarray, " m"], mine: np.ndarray) -> Int64[np.ndarray, " c"]:
    """The images of one class, heaviest first."""
    own = np.flatnonzero(mine)
    return own[np.argsort(-of_image[own], kind="stable")]


def half_of(falling: Float[np.ndarray, " c"]) -> int:
    """How many of the heaviest hold half of the weight.

    >>> half_of(np.array([5.0, 1.0, 1.0, 1.0])), half_of(np.ones(4))
    (1, 2)
    """
    return int(np.searchsorted(np.cumsum(falling), falling.sum() / 2 * (1 - 1e-9)) + 1)


def drawn(
    scene: Scene,
    sight: Sight,
    weight: Float[np.ndarray, "m t"],
    members: dict[int, Int64[np.ndarray, " c"]],
    half: dict[int, int],
) -> bytes:
    """Name, strip, heaviest and lightest images of every class."""
    most = NAME + STRIP + 28
    least = most + EACH * (THUMB + GAP) + 24
    sheet = Canvas(least + EACH * (THUMB + GAP) - GAP, HEAD + ROW * len(members))
    legend(sheet)
    for x, title in ((NAME, "all images, by weight"), (most, "weigh most"), (least, "weigh least")):
        sheet.text(x, HEAD - 14, title, size=12)
    for row, (c, order) in enumerate(members.items()):
        top = HEAD + row * ROW
        name_row(sheet, top + THUMB / 2, scene.names[c], f"{len(order)} images")
        of_image = weight[order].mean(1)
        sheet.heat(NAME, top + 12, STRIP, 30, more_or_less(of_image[None]))
        sheet.frame(NAME, top + 12, STRIP, 30)
        sheet.note(NAME, top + 53, f"half of the weight on {half[c]} of {len(order)}")
        each = min(EACH, len(order) // 2)
        for x, places in ((most, range(each)), (least, range(len(order) - each, len(order)))):
            for column, place in enumerate(places):
                at, token = x + column * (THUMB + GAP), weight[order[place]]
                sheet.picture(at, top, THUMB, shown_image(scene, int(sight.index[order[place]]), token))
                sheet.note(at + THUMB / 2, top + THUMB + 10, times(token.mean()), anchor="mm")
    return sheet.png()


def shown_image(scene: Scene, image: int, token: Float[np.ndarray, " t"]) -> UInt8[np.ndarray, "h w 3"]:
    """The image, under the weights of its positions over their mean where it has any: full colour from twice on."""
    grid = scene.grid(len(token))
    if grid is None:
        return scene.x[image]
    ratio = (token / max(token.mean(), 1e-30)).reshape(grid)
    strength = np.minimum(1, STRONGEST * np.abs(doublings(ratio)))
    return tinted(scene.x[image], more_or_less(np.where(ratio > 1, np.inf, 0.0)), 0.75 * strength)


def legend(sheet: Canvas) -> None:
    """What the colours of a strip mean."""
    scale = 2.0 ** np.linspace(-STRONGEST, STRONGEST, 61)
    sheet.heat(NAME, 4, STRIP, 8, more_or_less(scale[None]))
    sheet.frame(NAME, 4, STRIP, 8)
    for share, text, anchor in ((0.0, "×1/8", "lm"), (0.5, "×1, equal", "mm"), (1.0, "×8", "rm")):
        sheet.note(NAME + share * STRIP, 21, text, anchor)


def times(ratio: float) -> str:
    """A share over an equal one.

    >>> times(31.4), times(5.12), times(1.084), times(0.034), times(0.0001)
    ('×31', '×5.1', '×1.08', '×0.03', '<×0.01')
    """
    digits = next(digits for digits, least in ((0, 9.95), (1, 1.995), (2, 0.0)) if ratio >= least)
    return "<×0.01" if ratio < 0.005 else f"×{ratio:.{digits}f}"
