"""Where the attention at the cut looks, picture by picture and token by token: what it keeps is what crosses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from attcem.explain import sheet
from attcem.explain.attention import half_of
from attcem.explain.look import Scene
from attcem.types import Explanation

THUMB, GAP = 68, 8
MOST = 12
"""So many tokens are drawn."""


def crossing(scene: Scene) -> Iterator[Explanation]:
    """One picture, if attention decides what crosses."""
    if scene.looks is None:
        return
    index, maps = scene.looks
    spread = np.mean([half_of(np.sort(token.ravel())[::-1]) for token in maps.reshape(-1, *maps.shape[2:])])
    share = spread / np.prod(maps.shape[2:])
    alike = np.corrcoef(maps.mean(0).reshape(maps.shape[1], -1)).mean() if maps.shape[1] > 1 else 1.0
    yield Explanation(
        file="crossing.png",
        title="Where the attention at the cut looks",
        caption=f"Half of a token's attention is on {share:.0%} of the places on average (50% would be everywhere). "
        + ("Tokens look at much the same places. " if alike > 0.5 else "Tokens look at different places. ")
        + "Orange places weigh more than an equal share, blue ones less. What no token looks at stays on the device."
        + (f" Shown are {MOST} of {maps.shape[1]} tokens." if maps.shape[1] > MOST else ""),
        png=drawn(scene, index, maps[:, :MOST]),
    )


def drawn(scene: Scene, index: np.ndarray, maps: Float[np.ndarray, "m tokens a b"]) -> bytes:
    """A row for each picture: itself, then under the attention of every token."""
    step = THUMB + GAP
    names = [sheet.short(scene.names[scene.y[i]]) for i in index]
    figure, axes = sheet.rows(names, (maps.shape[1] + 1) * step + GAP, step)
    for token in range(maps.shape[1]):
        axes.text((token + 1) * step + GAP + THUMB / 2, -8, f"token {token + 1}", ha="center", fontsize=sheet.SMALL)
    for row, (i, own) in enumerate(zip(index, maps, strict=True)):
        sheet.put_picture(axes, 0, row * step, THUMB, scene.x[i])
        for token, shares in enumerate(own):
            sheet.put_picture(axes, (token + 1) * step + GAP, row * step, THUMB, scene.x[i], sheet.cover_of(shares))
    return sheet.png(figure)
