"""What the page shows beside an artifact: its undefended twin, an attacker of each, pictures that none was trained on.

It is demonstration material, in a folder of its own inside the artifact; no device uses any of it.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from attcem.reading.plain import read_json
from attcem.reading.typed import from_plain
from attcem.ship.artifact import CLOUD, DEVICE, Artifact, File, Randomness, WireFormat, fingerprint, inside

SCHEMA = "attcem-page-1"
PAGE, FACTS, ATTACKER = "page", "page.json", "attacker.onnx"
DEFENDED, UNDEFENDED = "defended", "undefended"
HALVES = (DEVICE, CLOUD)
OWN = f"{DEFENDED}/{ATTACKER}", *(f"{UNDEFENDED}/{name}" for name in (*HALVES, ATTACKER))


@dataclass(frozen=True)
class Leak:
    """How well pictures were rebuilt: means over test pictures."""

    mse: float
    ssim: float


@dataclass(frozen=True)
class Stop:
    """One place of the slider: Gaussian noise at so many times its own strength, and what it does to test pictures."""

    scale: float
    leak: Leak
    accuracy: float


@dataclass(frozen=True)
class Side:
    """One of the two networks that are compared."""

    defence: str
    sigma: float  # of its own Gaussian noise
    randomness: list[Randomness]
    wire: WireFormat
    accuracy: float  # by its audit
    suite: str
    worst: Leak  # of all attacks of its audit, by picture
    attacker: str  # the audit's strongest single decoder, which the page's was trained as
    audited: Leak  # of that decoder, by the audit
    stops: list[Stop]
    own: int  # the stop that is the artifact as it was audited


@dataclass(frozen=True)
class Example:
    """A test picture: its class, and its bytes in rows of pixels, channels last, in base64."""

    label: int
    pixels: str


@dataclass(frozen=True)
class Page:
    """The content of page.json."""

    shape: list[int]
    classes: list[str]
    defended: Side
    undefended: Side
    budget: int  # messages that one picture may send
    images: int  # test pictures that every mean is over
    mean_image: Leak  # a free guess
    examples: list[Example]
    files: dict[str, File]
    schema: str = SCHEMA

    def save(self, folder: Path) -> None:
        (folder / FACTS).write_text(json.dumps(dataclasses.asdict(self), indent=1) + "\n")


def read_page(folder: Path, artifact: Artifact) -> Page:
    """What the page of an artifact shows, after every file was found to be the one that was written for it."""
    place = folder / PAGE
    again = f"`attcem page {folder} --twin UNDEFENDED-ARTIFACT`"
    if not (place / FACTS).is_file():
        raise ValueError(f"{folder} has no page: make it with {again}")
    data = read_json(place / FACTS)
    if isinstance(data, dict) and data.get("schema") != SCHEMA:
        raise ValueError(f"{place / FACTS} has schema {data.get('schema')!r}, this version reads {SCHEMA!r}: {again}")
    page = from_plain(Page, data, place / FACTS)
    for name in OWN:
        if not inside(place, name).is_file() or page.files.get(name) != fingerprint(place / name):
            raise ValueError(f"{place / name} is not the file that the page was made with: make it again, {again}")
    for name in HALVES:
        if page.files.get(f"{DEFENDED}/{name}") != artifact.files[name]:
            raise ValueError(f"{place} was made for another artifact than {folder}: make it again, {again}")
    return page
