"""Where attention is: on which images of a class, and on which places of what crosses the cut."""

from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.patches import Rectangle

from attcem.explain import sheet
from attcem.explain.look import Scene, Sight
from attcem.types import Explanation

EACH = 4  # images that weigh most, and as many that weigh least
TOKENS = 12  # so many of those that cross are drawn
THUMB, GAP, STRIP = 68, 8, 250
ROW = THUMB + 30
STRONGEST = 3.0  # doublings, or halvings, at which a colour is full: eight times as much as equal, or an eighth


def attention(scene: Scene, sight: Sight, weight: Float[np.ndarray, "m t"]) -> Explanation:
    y, of_image = scene.y[sight.index], weight.mean(1)
    heaviest = np.argsort(-of_image, kind="stable")
    members = {int(c): heaviest[y[heaviest] == c] for c in np.unique(y)}
    half = {c: half_of(of_image[order]) for c, order in members.items()}
    even = {c: half[c] / (len(order) / 2) for c, order in members.items()}
    shown = sheet.chosen_rows(y, lambda c: -even[c])
    narrowest = min(shown, key=lambda c: even[c])
    middle = float(np.median(list(even.values())))
    verdict = "Attention is nearly even: the penalty sees all images of a class about alike."
    if middle < 0.5:
        verdict = "Attention is on few images: the penalty sees mostly these, and the others leak unseen."
    elif middle < 0.9:
        verdict = "Attention prefers some images: the penalty sees these more than the others."
    share = np.mean([half_of(np.sort(row)[::-1]) for row in weight]) / weight.shape[1]
    positions = (
        " On an image, orange positions weigh more than its others, blue ones less: half of an image's weight is on "
        f"{share:.0%} of its positions on average."
    )
    caption = (
        f"{verdict} In {scene.names[narrowest]}, the most uneven class, half of the weight rests on "
        f"{half[narrowest]} of {len(members[narrowest])} images (even would be "
        f"{np.ceil(len(members[narrowest]) / 2):.0f}). "
        "A strip holds all images of a class, heaviest first: orange weighs more than an equal share, blue less; ×2 is "
        "twice an equal share. In training, shares are taken inside a batch; here, over all images of the class."
        + (positions if scene.grid(weight.shape[1]) else "")
        + sheet.of_how_many(shown, y, "those whose attention is most uneven")
    )
    png = drawn(scene, sight, weight, {c: members[c] for c in shown})
    return Explanation(f"attention-{sight.link}.png", f"Attention of {sight.name}", caption, png)


def half_of(falling: Float[np.ndarray, " c"]) -> int:
    """How many of the heaviest hold half of the weight.

    >>> half_of(np.array([5.0, 1.0, 1.0, 1.0])), half_of(np.ones(4))
    (1, 2)
    """
    return int(np.searchsorted(np.cumsum(falling), falling.sum() / 2 * (1 - 1e-9)) + 1)


def drawn(scene: Scene, sight: Sight, weight: Float[np.ndarray, "m t"], members: dict[int, np.ndarray]) -> bytes:
    most = STRIP + 28
    least = most + EACH * (THUMB + GAP) + 24
    names = [f"{sheet.short(scene.names[c])}\n{len(order)} images" for c, order in members.items()]
    figure, axes = sheet.rows(names, least + EACH * (THUMB + GAP) - GAP, ROW)
    for x, title in ((0, "all images, by weight"), (most, "weigh most"), (least, "weigh least")):
        axes.text(x, -14, title)
    colours: Any = {"cmap": sheet.MORE_OR_LESS, "vmin": -STRONGEST, "vmax": STRONGEST}
    for row, order in enumerate(members.values()):
        top, shares = row * ROW, weight[order].mean(1)
        strip = axes.imshow(sheet.doublings(shares)[None], extent=(0, STRIP, top + 42, top + 12), **colours)
        axes.add_patch(Rectangle((0, top + 12), STRIP, 30, fill=False, edgecolor=sheet.RULE))
        sheet.put_note(axes, 0, top + 53, f"half of the weight on {half_of(shares)} of {len(order)}", ha="left")
        each = min(EACH, len(order) // 2)
        for x, places in ((most, range(each)), (least, range(len(order) - each, len(order)))):
            for column, place in enumerate(places):
                at, token = x + column * (THUMB + GAP), weight[order[place]]
                grid = scene.grid(len(token))
                cover = None if grid is None else sheet.cover_of(token.reshape(grid))
                sheet.put_picture(axes, at, top, THUMB, scene.x[sight.index[order[place]]], cover)
                sheet.put_note(axes, at + THUMB / 2, top + THUMB + 10, times(token.mean()))
    beside = axes.inset_axes((0, -66, STRIP, 8), transform=axes.transData)
    scale = figure.colorbar(strip, cax=beside, orientation="horizontal")
    scale.set_ticks([-STRONGEST, 0, STRONGEST], labels=["×1/8", "×1, equal", "×8"])
    return sheet.png(figure)


def times(ratio: float) -> str:
    """A share over an equal one.

    >>> times(31.4), times(5.12), times(1.084), times(0.034), times(0.0001)
    ('×31', '×5.1', '×1.08', '×0.03', '<×0.01')
    """
    digits = next(digits for digits, least in ((0, 9.95), (1, 1.995), (2, 0.0)) if ratio >= least)
    return "<×0.01" if ratio < 0.005 else f"×{ratio:.{digits}f}"


def crossing(scene: Scene) -> list[Explanation]:
    """A row for each picture: itself, then under the attention of every token, if attention decides what crosses."""
    if scene.looks is None:
        return []
    index, maps = scene.looks
    tokens = maps.shape[1]
    spread = np.mean([half_of(np.sort(token.ravel())[::-1]) for token in maps.reshape(-1, *maps.shape[2:])])
    share = spread / np.prod(maps.shape[2:])
    alike = np.corrcoef(maps.mean(0).reshape(tokens, -1)).mean() if tokens > 1 else 1.0
    step, few = THUMB + GAP, min(TOKENS, tokens)
    figure, axes = sheet.rows([sheet.short(scene.names[scene.y[i]]) for i in index], (few + 1) * step + GAP, step)
    for token in range(few):
        axes.text((token + 1) * step + GAP + THUMB / 2, -8, f"token {token + 1}", ha="center", fontsize=sheet.SMALL)
    for row, (i, own) in enumerate(zip(index, maps, strict=True)):
        sheet.put_picture(axes, 0, row * step, THUMB, scene.x[i])
        for token, shares in enumerate(own[:few]):
            sheet.put_picture(axes, (token + 1) * step + GAP, row * step, THUMB, scene.x[i], sheet.cover_of(shares))
    caption = (
        f"Half of a token's attention is on {share:.0%} of the places on average (50% would be everywhere). "
        + ("Tokens look at much the same places. " if alike > 0.5 else "Tokens look at different places. ")
        + "Orange places weigh more than an equal share, blue ones less. What no token looks at stays on the device."
        + (f" Shown are {TOKENS} of {tokens} tokens." if tokens > TOKENS else "")
    )
    return [Explanation("crossing.png", "Where the attention at the cut looks", caption, sheet.png(figure))]
