"""The gallery: the same pictures down the rows, as they were and as the best attack rebuilt them."""

import numpy as np

from attcem.figures.group import Drawn
from attcem.figures.pictures import rows_of
from attcem.runs.numbers import mean, ratio, small
from attcem.slides.page import BODY, Box, Page, Part, Picture, Text
from attcem.slides.pictures import png_of
from attcem.slides.story import Story

ROWS, ACROSS, GAP, NAMES = 6, 10, 0.06, 3.3  # rows at most, pictures in one, inches between them, and for the names


def gallery(story: Story) -> list[Page]:
    say, hero, bare = story.say, story.hero, story.bare
    found = [(one, rows) for one in story.drawn if (rows := rows_of([one]))]
    if not found:
        return []
    originals = found[0][1][0][1]
    alike = [(one, rows[1][1]) for one, rows in found if np.array_equal(rows[0][1], originals)]
    average = found[0][0].runs[0].gallery.get("mean_image")
    rows = [(say("original"), originals), *((label(story, one), rebuilt) for one, rebuilt in alike[: ROWS - 2])]
    rows += [(say("mean image"), average)] if average is not None else []
    said = (
        say(
            "What the cloud rebuilds: SSIM {before} without a defence, {after} with {defence}",
            before=ratio(bare.ssim),
            after=ratio(hero.ssim),
            defence=story.name(hero.name),
        )
        if bare and not hero.undefended
        else say("What the cloud rebuilds: SSIM {ssim}", ssim=ratio(hero.ssim))
    )
    notes = say(
        "Nobody chose these pictures: they are the first of a random draw from the test images. Each row shows the "
        "attack with the lowest error under that defence. A row that looks like the mean image shows nothing of the "
        "picture."
    )
    return [Page(say("Gallery"), said, tuple(grid(rows)), notes)]


def label(story: Story, one: Drawn) -> str:
    mse, ssim = mean([run.worst.mse for run in one.runs]), mean([run.worst.ssim for run in one.runs])
    return f"{story.name(one.name, 44)}: MSE {small(mse)}, SSIM {ratio(ssim)}"


def grid(rows: list[tuple[str, np.ndarray]]) -> list[Part]:
    across = min(ACROSS, len(rows[0][1]))
    side = min((BODY.height - GAP * len(rows)) / len(rows), (BODY.width - NAMES) / across - GAP)
    parts: list[Part] = []
    for line, (name, pictures) in enumerate(rows):
        top = BODY.top + line * (side + GAP)
        parts.append(Text(Box(BODY.left, top, NAMES - 0.15, side), (name,), 14))
        for column in range(across):
            picture = pictures[min(column, len(pictures) - 1)]
            box = Box(BODY.left + NAMES + column * (side + GAP), top, side, side)
            parts.append(Picture(box, png_of(picture), f"{name}, {column + 1}"))
    return parts
