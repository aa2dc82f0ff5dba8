"""Names beside points: at the first place that is free; no name is better than a heap of them."""

from collections.abc import Mapping, Sequence

Box = tuple[float, float, float, float]

WIDTH, HEIGHT = 500.0, 340.0  # pixels that a chart has for its points, about
LETTER, LINE, AWAY = 6.6, 14.0, 9.0
PLACES = ("middle right", "top center", "bottom center", "middle left", "top right", "bottom right", "top left")


def free_places(
    points: Sequence[tuple[float, float, str]],
    x_range: Sequence[float],
    y_range: Sequence[float],
    line_labels: Mapping[str, float],
) -> list[str | None]:
    """For each (x, y, name) where its name can stand without touching another point or name; None where nowhere.

    `line_labels` are words that start at the bottom and climb up the left of x.
    """

    def on_page(x: float, y: float) -> tuple[float, float]:
        """From the axes to pixels, y pointing up."""
        return (
            (x - x_range[0]) / (x_range[1] - x_range[0]) * WIDTH,
            (y - y_range[0]) / (y_range[1] - y_range[0]) * HEIGHT,
        )

    at = [on_page(x, y) for x, y, _ in points]
    taken: list[Box] = [(x - 7, y - 7, x + 7, y + 7) for x, y in at]
    for words, x in line_labels.items():
        line, _ = on_page(x, 0.0)
        taken.append((line - LINE - 2, 0.0, line, LETTER * len(words)))
    found: list[str | None] = []
    for (x, y), (_, _, name) in zip(at, points, strict=True):
        boxes = {place: _box(place, x, y, LETTER * len(name)) for place in PLACES}
        free = next((place for place, box in boxes.items() if _is_free(box, taken)), None)
        found.append(free)
        taken += [boxes[free]] if free else []
    return found


def _box(place: str, x: float, y: float, long: float) -> Box:
    level, side = place.split()
    left = {"right": x + AWAY, "left": x - AWAY - long, "center": x - long / 2}[side]
    low = {"middle": y - LINE / 2, "top": y + AWAY - 2, "bottom": y - AWAY - LINE + 2}[level]
    return left, low, left + long, low + LINE


def _is_free(box: Box, taken: Sequence[Box]) -> bool:
    inside = box[0] >= 0 and box[2] <= WIDTH and box[1] >= 0 and box[3] <= HEIGHT
    return inside and all(box[0] >= b[2] or b[0] >= box[2] or box[1] >= b[3] or b[1] >= box[3] for b in taken)
