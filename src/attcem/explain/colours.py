"""Colours that mean something: more or less than equal, how much, and which one."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, UInt8

PAPER, INK, SOFT, RULE = (252, 252, 250), (28, 29, 31), (90, 93, 99), (220, 220, 214)
BLUE, ORANGE = (0, 95, 158), (179, 71, 0)

KINDS = np.array(
    [
        (31, 119, 180),
        (255, 127, 14),
        (44, 160, 44),
        (214, 39, 40),
        (148, 103, 189),
        (140, 86, 75),
        (227, 119, 194),
        (160, 215, 80),
        (240, 200, 40),
        (23, 190, 207),
    ],
    np.uint8,
)
OTHER = (205, 205, 200)
"""Of everything after the tenth kind."""

STRONGEST = 3.0
"""Doublings, or halvings, at which a colour is full: eight times as much as equal, or an eighth."""


def kinds(numbers: Int[np.ndarray, "*n"]) -> UInt8[np.ndarray, "*n 3"]:
    """A colour of its own for 0 … 9, one pale grey for all others."""
    return np.vstack([KINDS, np.array(OTHER, np.uint8)])[np.minimum(numbers, len(KINDS))]


def colour_of(number: int) -> tuple[int, int, int]:
    """The colour of one kind."""
    r, g, b = (int(part) for part in kinds(np.array(number)))
    return r, g, b


def doublings(ratio: Float[np.ndarray, "*n"]) -> Float[np.ndarray, "*n"]:
    """log₂ of a share over an equal share, −1 to 1 from an eighth to eight times."""
    return np.clip(np.log2(np.maximum(ratio, 1e-12)) / STRONGEST, -1, 1)


def more_or_less(ratio: Float[np.ndarray, "*n"]) -> UInt8[np.ndarray, "*n 3"]:
    """White where equal (1), orange where more, blue where less."""
    level = doublings(ratio)[..., None]
    full = np.where(level > 0, np.array(ORANGE, float), np.array(BLUE, float))
    return (255 + np.abs(level) * (full - 255)).round().astype(np.uint8)


def amount(level: Float[np.ndarray, "*n"]) -> UInt8[np.ndarray, "*n 3"]:
    """From nearly white (0) to blue (1); what is not a number is grey."""
    pale = np.array((240, 244, 247), float)
    shade = np.clip(level, 0, 1)[..., None]
    drawn = np.where(np.isnan(shade), np.array(OTHER, float), pale + shade * (np.array(BLUE, float) - pale))
    return drawn.round().astype(np.uint8)
