"""The gallery: the same test pictures down the rows, as they were and as the cloud rebuilt them under each defence."""

import base64
import io
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from attcem.language import ENGLISH, Say
from attcem.report.selection import choose, closest, labelled, places_of
from attcem.report.tables import BASELINES
from attcem.runs import Setting
from attcem.runs.numbers import MISSING, ratio, small
from attcem.runs.settings import Place
from attcem.types import Result

COMFORTABLE, LARGEST = 84, 96  # pixels of width at which a small picture is easy to see, and a large one shrinks
ROOM = 2_200_000  # characters of the page that pictures may take: rows, then columns, are left out beyond
CELL = 200  # characters of a cell besides its picture
ROWS_AT_LEAST, ROWS_AT_MOST = 9, 48


class Picture(NamedTuple):
    """One cell: a picture as a data address, what it shows in words, its scores, and the MSE to sort by."""

    source: str
    alt: str
    mse: str = ""
    ssim: str = ""
    leak: float = 0.0


class Row(NamedTuple):
    """One test picture: its class, why it is shown, the original, then a cell per column."""

    number: int
    label: str
    why: str
    original: Picture
    cells: list[Picture]


class Shown(NamedTuple):
    """One column: a run, and of each attacked image the closest reconstruction with its attack."""

    setting: Setting
    run: Result
    best: Mapping[int, tuple[str, np.ndarray]]


class Gallery(NamedTuple):
    """Runs that show the same test pictures; the last column is the mean image."""

    place: Place
    columns: list[tuple[str, str, str]]  # title, remark and address of its configuration on the page
    rows: list[Row]
    width: int
    pictures: int
    left_out: list[str]

    @property
    def labels(self) -> list[str]:
        return sorted({row.label for row in self.rows})


def data_address(picture: np.ndarray) -> str:
    """A picture (h w, h w 1 or h w 3, uint8) as a PNG inside an address."""
    image = Image.fromarray(np.ascontiguousarray(picture[..., 0] if picture.shape[2:] == (1,) else picture))
    if image.width > LARGEST:
        image = image.resize((LARGEST, round(image.height * LARGEST / image.width)), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return png_address(file.getvalue())


def png_address(content: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(content).decode()


def comfortable_width(width: int) -> int:
    """A whole multiple of the width that is easy to see; large pictures shrink.

    >>> comfortable_width(28), comfortable_width(32), comfortable_width(64), comfortable_width(224)
    (84, 96, 64, 96)
    """
    return min(LARGEST, width * max(1, round(COMFORTABLE / width)))


def galleries(settings: Sequence[Setting], anchors: Mapping[int, str], say: Say = ENGLISH) -> list[Gallery]:
    """One gallery per set of test pictures; of several seeds the first is shown."""
    found: dict[tuple[Place, bytes], list[Shown]] = {}
    for setting in settings:
        for run in setting.runs:
            best = closest(run) if "original" in run.gallery else {}
            if best:
                key = (setting.place, run.gallery["original"][:ROWS_AT_LEAST].tobytes())
                found.setdefault(key, []).append(Shown(setting, run, best))
                break
    return [_gallery(members, ROOM // len(found), anchors, say) for members in found.values()]


def _gallery(members: list[Shown], room: int, anchors: Mapping[int, str], say: Say) -> Gallery:
    first = members[0].run
    some = [picture for each in members for _, picture in list(each.best.values())[:3]]
    size = max(len(data_address(picture)) for picture in (*first.gallery["original"][:3], *some)) + CELL
    fitting = max(1, min(len(members), room // (size * ROWS_AT_LEAST) - 2))
    shown, left = members[:fitting], members[fitting:]
    rows = max(ROWS_AT_LEAST, min(ROWS_AT_MOST, room // (size * (fitting + 2))))
    common = set.intersection(*(set(each.best) for each in shown))
    judges = [each.run for each in shown if not each.setting.undefended] or [first]
    columns = [
        (each.setting.name, f"seed {each.run.seed}" if each.setting.seeds > 1 else "", anchors.get(id(each.run), ""))
        for each in shown
    ]
    if "mean_image" in first.gallery:
        columns.append((say("mean image"), say("no latent needed"), ""))
    chosen = [_row(number, why, shown, say) for number, why in choose(common, labelled(first), judges, rows).items()]
    width, left_out = comfortable_width(first.gallery["original"].shape[2]), [each.setting.name for each in left]
    return Gallery(members[0].setting.place, columns, chosen, width, len(common), left_out)


def _row(number: int, why: str, members: Sequence[Shown], say: Say) -> Row:
    first = members[0].run
    label = labelled(first).get(number, MISSING)
    what = say("picture {number}, {label}", number=number + 1, label=label)
    cells = []
    for setting, run, best in members:
        attack, picture = best[number]
        cells.append(
            _picture(
                run,
                attack,
                number,
                picture,
                say("{name}, rebuilt by {attack}: {what}", name=say.again(setting.name), attack=attack, what=what),
            )
        )
    if "mean_image" in first.gallery:
        average = first.gallery["mean_image"][0]
        cells.append(_picture(first, "mean_image", number, average, f"{say(BASELINES['mean_image'])}: {what}"))
    original = first.gallery["original"][places_of(first).index(number)]
    return Row(number + 1, label, why, Picture(data_address(original), say("original: {what}", what=what)), cells)


def _picture(run: Result, name: str, number: int, picture: np.ndarray, alt: str) -> Picture:
    found = (run.per_image.get(f"{name}/{metric}", np.empty(0)) for metric in ("mse", "ssim"))
    mse, ssim = (float(values[number]) if number < len(values) else math.nan for values in found)
    shown = "" if math.isnan(mse) else small(mse), "" if math.isnan(ssim) else ratio(ssim)
    return Picture(data_address(picture), alt, *shown, mse)


def strips(run: Result, say: Say = ENGLISH) -> list[tuple[str, list[Picture]]]:
    rows = [name for name in ("original", *run.attacks, *BASELINES) if name in run.gallery]
    few = min((len(run.gallery[name]) for name in rows), default=0)
    places = places_of(run)[:few]
    found = []
    for name in rows:
        shown = zip(places, run.gallery[name], strict=False)
        said = {number: say("{name}: picture {number}", name=name, number=number + 1) for number in places}
        pictures = [_picture(run, name, number, pixels, said[number]) for number, pixels in shown]
        found.append((BASELINES.get(name, name), pictures))
    return found
