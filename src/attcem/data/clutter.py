"""Garments of Fashion-MNIST before a wall of private notes: most of a picture is of no use to the task."""

from __future__ import annotations

import hashlib
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Int64, UInt8
from torch import Tensor

from attcem.data.duplicates import duplicate_groups
from attcem.data.fashion import FASHION, Embedded
from attcem.data.source import Source
from attcem.types import Images
from attcem.types.mapped import MEMORY

SIDE, GARMENT = 48, 28  # pixels along a side of a picture, and of the garment's box
MARGIN = 1  # pixels around the box that stay black
ITEMS, TRIES = 16, 8
"""Words, numbers and shapes that seek a place on a wall, and places that each tries before it is left out."""
PAPER, INK = 1, 2  # of a stamp: what is black, and what has its grey; 0 is no part of it
DARKEST = 64  # the lowest grey level of clutter
TRAIN_SEED, TEST_SEED = 0, 1
BLOCK = 1000  # pictures drawn at a time

LETTERS = "25755 65656 34443 65556 74647 74644 34553 55755 72227 11152 55655 44447 57755"  # A to M
LETTERS += " 65555 25552 65644 25573 65655 34216 72222 55557 55552 55775 55255 55222 71247"
DIGITS = "75557 26227 71747 71717 55711 74717 74757 71222 75757 75717"
GLYPHS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", f"{LETTERS} {DIGITS}".split(), strict=True))
"""5 rows of 3 pixels, each row an octal digit: a font of our own, so that no machine draws another."""
WORDS = "BANK CALL DEBT DIET DR EXAM FLU GYM HOME JOB KEY LOAN MUM PILL PIN QUIT RENT SUE TAX VISA VOTE WIFI"
NUMBERS = [str(number) for number in range(13, 10_000, 37)]
SCALES, SHAPE_SIDES = (1, 2), (4, 6, 8, 11, 14)

Stamp = Bool[np.ndarray, "height width"]
Garments = UInt8[np.ndarray, "n 28 28 1"]
Pictures = UInt8[np.ndarray, "n 48 48 1"]
Corners = Int64[np.ndarray, "n 2"]  # top and left of each garment's box


def write(text: str, scale: int) -> Stamp:
    """A text, one column free between two characters, each pixel enlarged to scale × scale."""
    bits = [[f"{int(row):03b}0" for row in GLYPHS[character]] for character in text]
    rows = np.array([[bit == "1" for bit in "".join(row)] for row in zip(*bits, strict=True)])[:, :-1]
    return rows.repeat(scale, axis=0).repeat(scale, axis=1)


def shapes(side: int) -> list[Stamp]:
    """Disc, ring, square, frame, cross, triangle and two bars."""
    y, x = np.mgrid[:side, :side] * 2 - (side - 1)
    square, disc = np.ones((side, side), dtype=bool), x**2 + y**2 <= side**2
    ring, frame = disc & (x**2 + y**2 > (side - 4) ** 2), np.maximum(abs(x), abs(y)) == side - 1
    return [disc, ring, square, frame, abs(abs(x) - abs(y)) < 2, 2 * abs(x) <= y + side, square[:2], square[:, :2]]


@cache
def stamps() -> tuple[UInt8[np.ndarray, "stamps height width"], Int64[np.ndarray, "stamps 2"], Int64[np.ndarray, "4"]]:
    """Stamps, each in the top left of its array, their sizes, and where words, numbers and shapes begin and end."""
    kinds = [[write(text, scale) for text in texts for scale in SCALES] for texts in (WORDS.split(), NUMBERS)]
    kinds.append([shape for side in SHAPE_SIDES for shape in shapes(side)])
    every = list(chain.from_iterable(kinds))
    sizes = np.array([stamp.shape for stamp in every])
    padded = np.zeros((len(every), *sizes.max(axis=0)), dtype=np.uint8)
    for place, (height, width) in enumerate(sizes):
        padded[place, :height, :width] = np.where(every[place], INK, PAPER)
    return padded, sizes, np.cumsum([0, *map(len, kinds)])


class Dice:
    """A whole number for each of n pictures, from raw PCG64 bits, which numpy promises for ever."""

    def __init__(self, bits: np.random.PCG64, count: int) -> None:
        self.bits, self.count = bits, count

    def below(self, limit: int | Int64[np.ndarray, "*n"]) -> Int64[np.ndarray, " n"]:
        """From 0 to below the limit, which may be each picture's own."""
        return (self.bits.random_raw(self.count) >> np.uint64(1)).astype(np.int64) % limit

    def corner(self, free: Int64[np.ndarray, "*n 2"]) -> Corners:
        """Top and left of something that may move over so many pixels."""
        return np.stack([self.below(free[..., 0]), self.below(free[..., 1])], axis=1)


def draw_pictures(garments: Garments, seed: int) -> tuple[Pictures, Corners]:
    """Every garment at a random place with clutter around it, and the places."""
    bits, pictures = np.random.PCG64(seed), np.zeros((len(garments), SIDE, SIDE, 1), dtype=np.uint8)
    rows = [slice(start, start + BLOCK) for start in range(0, len(garments), BLOCK)]
    return pictures, np.concatenate([draw_block(pictures[some], garments[some], bits) for some in rows])


def draw_block(pictures: Pictures, garments: Garments, bits: np.random.PCG64) -> Corners:
    """Draw on black pictures; items look for a place one after another, and each covers what was there before it."""
    everyone, inside = np.arange(len(garments)), np.arange(GARMENT)
    dice = Dice(bits, len(garments))
    boxes = dice.corner(np.array([SIDE - GARMENT + 1] * 2))
    for _ in range(ITEMS):
        draw_item(pictures, boxes, dice)
    rows, columns = boxes[:, :1] + inside, boxes[:, 1:] + inside
    pictures[everyone[:, None, None], rows[:, :, None], columns[:, None, :]] = garments
    return boxes


def draw_item(pictures: Pictures, boxes: Corners, dice: Dice) -> None:
    """A word, a number or a shape in every picture where it finds a place clear of the garment's box."""
    every, sizes, begins = stamps()
    kind = dice.below(len(begins) - 1)
    stamp = begins[kind] + dice.below(np.diff(begins)[kind])
    grey, size = DARKEST + dice.below(256 - DARKEST), sizes[stamp]
    corner, touching = np.zeros_like(boxes), np.ones(len(boxes), dtype=bool)
    for _ in range(TRIES):
        corner = np.where(touching[:, None], dice.corner(SIDE - size + 1), corner)
        touching &= touches(corner, size, boxes)
    clear = np.flatnonzero(~touching)
    notes = every[stamp[clear]]
    which, down, right = np.nonzero(notes)
    picture = clear[which]
    level = np.where(notes[which, down, right] == INK, grey[picture], 0)
    pictures[picture, corner[picture, 0] + down, corner[picture, 1] + right, 0] = level


def touches(corner: Corners, size: Int64[np.ndarray, "n 2"], boxes: Corners) -> Bool[np.ndarray, " n"]:
    """Whether something at this corner reaches into a garment's box or its margin."""
    return ((corner < boxes + GARMENT + MARGIN) & (corner + size > boxes - MARGIN)).all(axis=1)


class Cluttered(Embedded):
    """Drawn anew at every load; copies of a garment stay together, whatever is around them."""

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        plain = super().read(name, path, root, memory)
        (train, _), (test, _) = draw_both(plain)
        assert plain.x_test is not None
        copies = duplicate_groups([plain.x_train, plain.x_test], plain.labels, root)
        return Source(train, plain.y_train, test, plain.y_test, copies, plain.class_names)


CLUTTER = Cluttered("Fashion-MNIST before a wall of private notes, 18,000 + 2,000 grey 48x48 pictures, drawn here")


def draw_both(plain: Source) -> tuple[tuple[Pictures, Corners], tuple[Pictures, Corners]]:
    assert plain.x_test is not None
    return draw_pictures(plain.x_train, TRAIN_SEED), draw_pictures(plain.x_test, TEST_SEED)


def garment_corners(images: Images) -> Int64[Tensor, "n 2"]:
    """Top and left of the garment's box in any pictures of this data set, which are known by their content."""
    known = corners_by_content()
    try:
        return torch.tensor([known[digest(picture)] for picture in images.x.cpu().numpy()]).reshape(-1, 2)
    except KeyError:
        raise ValueError("a picture is not from this data set: give some that load_data('clutter') gave") from None


def clutter_mask(images: Images) -> Bool[Tensor, "n 1 h w"]:
    """True outside the garment's box: the pixels that the task does not need."""
    past = torch.arange(SIDE) - garment_corners(images)[:, :, None]
    rows, columns = ((past >= 0) & (past < GARMENT)).unbind(1)
    return ~(rows[:, :, None] & columns[:, None, :])[:, None]


@cache
def corners_by_content() -> dict[bytes, tuple[int, int]]:
    drawn = draw_both(FASHION.read("fashion", "", Path(), MEMORY))
    every = chain.from_iterable(zip(pictures, boxes.tolist(), strict=True) for pictures, boxes in drawn)
    return {digest(picture): (top, left) for picture, (top, left) in every}


def digest(picture: UInt8[np.ndarray, "h w c"]) -> bytes:
    return hashlib.blake2b(picture.tobytes(), digest_size=16).digest()
