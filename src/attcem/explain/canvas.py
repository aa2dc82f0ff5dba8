"""A sheet to draw on: text, pictures, heat maps and dots, measured in the page's pixels and saved as PNG."""

from __future__ import annotations

import io
import math
from functools import cache

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont, ImageOps

from attcem.explain.colours import INK, PAPER, RULE, SOFT

DENSITY = 2
"""Dots per pixel of the page: sharp on good screens and in print. The PNG says so in its resolution."""

MARGIN = 14
"""Of paper around everything, in pixels of the page."""

SMOOTH = 3
"""Dots are drawn so much larger, then shrunk."""

FONTS = ("DejaVuSans.ttf", "Arial.ttf", "NotoSansCJK-Regular.ttc", "PingFang.ttc", "msyh.ttc")
"""Whichever of these the machine has; Pillow's own, which knows little beyond ASCII, is the last resort."""

Colour = tuple[int, int, int]


@cache
def fonts(size: int) -> list[ImageFont.FreeTypeFont | ImageFont.ImageFont]:
    """What there is to write with, best first."""
    found: list[ImageFont.FreeTypeFont | ImageFont.ImageFont] = []
    for name in FONTS:
        try:
            found.append(ImageFont.truetype(name, size))
        except OSError:
            continue
    return [*found, ImageFont.load_default(size)]


@cache
def knows(font: ImageFont.FreeTypeFont, letter: str) -> bool:
    """Whether a font has a shape for a letter, and not only a box."""
    return bytes(font.getmask(letter)) != bytes(font.getmask("\uffff"))


def written(text: str, size: int) -> tuple[str, ImageFont.FreeTypeFont | ImageFont.ImageFont]:
    """A text and a font that can write it; where none can, the closest that ASCII allows."""
    letters = [letter for letter in set(text) if letter not in " \t"]
    for font in fonts(size):
        if isinstance(font, ImageFont.FreeTypeFont) and all(knows(font, letter) for letter in letters):
            return text, font
    if len(fonts(size)) > 1:
        return text, fonts(size)[0]
    return text.replace("×", "x").replace("σ", " sigma").encode("ascii", "replace").decode(), fonts(size)[-1]


class Canvas:
    """A sheet of paper; positions and sizes are pixels of the page."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.image = Image.new("RGB", (scaled(width), scaled(height)), PAPER)
        self.pen = ImageDraw.Draw(self.image)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: int = 13,
        colour: Colour = INK,
        anchor: str = "lm",
        room: float = 0,
    ) -> None:
        """Words at a point, anchored as Pillow does (l m r, then a m s), their middle left out if there is no room."""
        text, font = written(text, size * DENSITY)
        whole, kept = text, len(text)
        while room and kept > 1 and font.getlength(text) > room * DENSITY:
            kept -= 1
            text = f"{whole[: kept - kept // 2]}…{whole[len(whole) - kept // 2 :]}"
        self.pen.text((scaled(x), scaled(y)), text, fill=colour, font=font, anchor=anchor)

    def note(self, x: float, y: float, text: str, anchor: str = "lm") -> None:
        """Small words that explain."""
        self.text(x, y, text, size=11, colour=SOFT, anchor=anchor)

    def line(self, x: float, y: float, to_x: float, to_y: float, colour: Colour = RULE) -> None:
        """A thin line."""
        self.pen.line([scaled(x), scaled(y), scaled(to_x), scaled(to_y)], fill=colour, width=DENSITY)

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        """A filled rectangle, nothing where it is too small to see."""
        right, bottom = scaled(x + width) - 1, scaled(y + height) - 1
        if right >= scaled(x) and bottom >= scaled(y):
            self.pen.rectangle([scaled(x), scaled(y), right, bottom], fill=colour)

    def frame(self, x: float, y: float, width: float, height: float) -> None:
        """A thin line around a rectangle, just inside."""
        self.pen.rectangle(
            [scaled(x), scaled(y), scaled(x + width) - 1, scaled(y + height) - 1], outline=RULE, width=DENSITY
        )

    def heat(self, x: float, y: float, width: float, height: float, colours: UInt8[np.ndarray, "r c 3"]) -> None:
        """Cells of given colours that fill a rectangle."""
        cells = Image.fromarray(np.ascontiguousarray(colours))
        self.image.paste(
            cells.resize((scaled(width), scaled(height)), Image.Resampling.NEAREST), (scaled(x), scaled(y))
        )

    def picture(self, x: float, y: float, size: float, pixels: UInt8[np.ndarray, "h w 3"]) -> None:
        """A picture inside a square, as large as fits: small ones keep their pixels, large ones are shrunk smoothly."""
        ratio = scaled(size) / max(pixels.shape[:2])
        shape = (max(1, round(pixels.shape[1] * ratio)), max(1, round(pixels.shape[0] * ratio)))
        how = Image.Resampling.NEAREST if ratio > 1 else Image.Resampling.LANCZOS
        fitted = Image.fromarray(np.ascontiguousarray(pixels)).resize(shape, how)
        corner = (scaled(x) + (scaled(size) - shape[0]) // 2, scaled(y) + (scaled(size) - shape[1]) // 2)
        self.image.paste(fitted, corner)

    def dots(
        self,
        x: float,
        y: float,
        size: tuple[float, float],
        points: Float[np.ndarray, "n 2"],
        colours: UInt8[np.ndarray, "n 3"],
        radius: float = 2.5,
    ) -> None:
        """Dots at these places of a rectangle, half transparent so that crowds show."""
        scale = DENSITY * SMOOTH
        sheet = Image.new("RGB", (round(size[0] * scale), round(size[1] * scale)), PAPER)
        pen = ImageDraw.Draw(sheet, "RGBA")
        for (across, down), colour in zip(points * scale, colours, strict=True):
            around = radius * scale
            pen.ellipse([across - around, down - around, across + around, down + around], fill=(*map(int, colour), 170))
        self.image.paste(sheet.reduce(SMOOTH), (scaled(x), scaled(y)))

    def ring(self, x: float, y: float, radius: float) -> None:
        """An empty circle."""
        corners = [scaled(x - radius), scaled(y - radius), scaled(x + radius), scaled(y + radius)]
        self.pen.ellipse(corners, outline=INK, width=DENSITY)

    def png(self) -> bytes:
        """The sheet as a file, with a margin."""
        file = io.BytesIO()
        ImageOps.expand(self.image, scaled(MARGIN), PAPER).save(
            file, "PNG", optimize=True, dpi=(96 * DENSITY, 96 * DENSITY)
        )
        return file.getvalue()


def scaled(length: float) -> int:
    """Pixels of the page → dots of the picture."""
    return math.floor(length * DENSITY + 0.5)
