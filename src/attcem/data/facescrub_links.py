"""Follow FaceScrub's list of links: fetch each picture, check it, keep only the face, survive an interruption."""

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PIL import Image

from attcem.data.fetch import fetch, parse_checksum
from attcem.data.pictures import Labelled, open_picture
from attcem.progress import bar

SIZE = (64, 64)
COLUMNS = "name, image_id, face_id, url, bbox, sha256"
PICTURE_LIMIT = 50 << 20
AT_ONCE = 8


@dataclass(frozen=True)
class Link:
    """One line of the list."""

    person: str
    url: str
    box: tuple[int, int, int, int]
    sha256: str

    @property
    def key(self) -> str:
        """A file name for the face that no list can abuse."""
        return hashlib.sha256(repr((self.person, self.url, self.box, self.sha256)).encode()).hexdigest()[:32]


def read_links(path: Path) -> Iterator[Link]:
    """The lines of facescrub_actors.txt or facescrub_actresses.txt."""
    for number, line in enumerate(path.read_text("utf-8", "replace").splitlines(), start=1):
        fields = line.split("\t")
        if fields[0] == "name" or not line.strip():
            continue
        try:
            person, _, _, url, box, sha256 = fields
            left, top, right, bottom = (int(number) for number in box.split(","))
            parse_checksum(f"sha256:{sha256}")
        except ValueError as error:
            raise ValueError(
                f"{path.name}, line {number} is not `{COLUMNS}` with tabs between: get the list again"
            ) from error
        yield Link(person, url, (left, top, right, bottom), sha256.strip().lower())


def fetch_faces(
    links: Sequence[Link], folder: Path, *, progress: bool, pause: float = 1.0, timeout: float = 15.0
) -> Labelled:
    """Person and face of every link that still gives its picture; those already in the folder are not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    links = list({link.key: link for link in links}.values())
    work = partial(_fetch_face, folder=folder, pause=pause, timeout=timeout)
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        with bar("fetching faces", len(links), shown=progress) as show:
            for done, _ in enumerate(pool.map(work, links), start=1):
                show(done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    alive: Labelled = [(link.person, (link.url, _face(folder, link))) for link in links if _face(folder, link).exists()]
    if not alive:
        shutil.rmtree(folder)
        raise ValueError(f"none of the {len(links):,} links gives its picture: check your connection and try again")
    return alive


def _face(folder: Path, link: Link) -> Path:
    return folder / f"{link.key}.png"


def _fetch_face(link: Link, folder: Path, pause: float, timeout: float) -> None:
    """Keep the face, or a mark that the link is dead."""
    face, dead, part = _face(folder, link), folder / f"{link.key}.dead", folder / f"{link.key}.part"
    if face.exists() or dead.exists():
        return
    try:
        checksums = [f"sha256:{link.sha256}"]
        fetch(link.url, part, checksums, progress=False, attempts=2, pause=pause, timeout=timeout, limit=PICTURE_LIMIT)
        with open_picture((link.url, part)) as image:
            crop(image, link.box).save(part.with_suffix(".new"), format="PNG")
        part.with_suffix(".new").replace(face)
    except ValueError:
        dead.touch()
    part.unlink(missing_ok=True)


def crop(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    """The official box of a picture, cut to the picture's edges, at 64x64."""
    left, top, right, bottom = box
    inside = (max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height))
    if inside[0] >= inside[2] or inside[1] >= inside[3]:
        raise ValueError(f"the box {box} lies outside a picture of {image.size}: get the list again")
    return image.convert("RGB").crop(inside).resize(SIZE, Image.Resampling.LANCZOS)
