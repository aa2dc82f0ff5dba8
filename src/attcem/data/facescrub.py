"""FaceScrub (Ng & Winkler 2014): published as a list of links, so it is made from the list or from your own copy.

Each picture of the list is fetched and checked, and only the face is kept; an interruption loses nothing.
"""

import hashlib
import logging
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from PIL import Image

from attcem.data.archive import members
from attcem.data.entry import Cached
from attcem.data.fetch import fetch, parse_checksum, wrong_checksum
from attcem.data.imagefolder import pictures_by_class
from attcem.data.pictures import Labelled, decode, is_picture, open_picture
from attcem.data.source import Source
from attcem.progress import bar

SIZE = (64, 64)
COLUMNS = "name, image_id, face_id, url, bbox, sha256"
PICTURE_LIMIT = 50 << 20
AT_ONCE = 8
HOW = (
    "facescrub has no archive to download: ask for its list at http://vintage.winklerbros.net/facescrub.html, then "
    "type: attcem data get facescrub --from facescrub_actors.txt (or the folder with both lists); "
    "a zip, tar or folder of <person>/<pictures> also does"
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FaceScrub(Cached):
    """A data set that only its users can put together: from a list of links, or from <person>/<pictures>."""

    def get(self, name: str, root: Path, source: Path | None, checksum: str | None, progress: bool) -> Path:
        target = root / f"{name}.npz"
        if source is None and target.exists():
            return target
        if source is None:
            raise ValueError(HOW)
        if not (source.is_file() or source.is_dir()):
            raise ValueError(f"{source} does not exist, or is neither file nor folder. {HOW}")
        if checksum and source.is_dir():
            raise ValueError(f"{source} is a folder, which has no checksum: leave --checksum out")
        if checksum and (problem := wrong_checksum(source, [checksum])):
            raise ValueError(f"{source} {problem}: give the file you trust, or its own checksum")
        candidates = sorted(source.glob("facescrub_act*.txt")) if source.is_dir() else [source]
        lists = [path for path in candidates if path.suffix.lower() == ".txt" and path.is_file()]
        workshop = root / "facescrub.part"
        if lists:
            links = [link for path in lists for link in read_links(path)]
            faces = fetch_faces(links, workshop, progress=progress)
            log.warning("facescrub: %s of %s links still give their picture", f"{len(faces):,}", f"{len(links):,}")
        else:
            faces = list(_own_copy(source, progress))
        if not faces:
            raise ValueError(f"no face was found. {HOW}")
        people = sorted({person for person, _ in faces})
        arrays = decode(faces, people, size=SIZE, grey=False, progress=progress)
        Source(*arrays, class_names=tuple(people)).write(target)
        if lists:
            shutil.rmtree(workshop)
        return target


def _own_copy(source: Path, progress: bool) -> Iterator[tuple[str, tuple[str, bytes | Path]]]:
    """Person and picture: the folder that holds a picture names the person."""
    if source.is_dir():
        yield from pictures_by_class(source, source.resolve())
        return
    for name, content in members(source, progress=progress):
        parts = PurePosixPath(name).parts
        if is_picture(name) and len(parts) > 1:
            yield parts[-2], (name, content)


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


def fetch_faces(links: Sequence[Link], folder: Path, *, progress: bool) -> Labelled:
    """Person and face of every link that still gives its picture; those already in the folder are not fetched again."""
    folder.mkdir(parents=True, exist_ok=True)
    links = list({link.key: link for link in links}.values())
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        with bar("fetching faces", len(links), shown=progress) as show:
            for done, _ in enumerate(pool.map(partial(_fetch_face, folder), links), start=1):
                show(done)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    faces = [(link, folder / f"{link.key}.png") for link in links]
    alive: Labelled = [(link.person, (link.url, face)) for link, face in faces if face.exists()]
    if not alive:
        shutil.rmtree(folder)
        raise ValueError(f"none of the {len(links):,} links gives its picture: check your connection and try again")
    return alive


def _fetch_face(folder: Path, link: Link) -> None:
    """Keep the face, or a mark that the link is dead."""
    face, dead, part = (folder / f"{link.key}.{ending}" for ending in ("png", "dead", "part"))
    if face.exists() or dead.exists():
        return
    try:
        checksum = f"sha256:{link.sha256}"
        fetch(link.url, part, [checksum], progress=False, attempts=2, timeout=15.0, limit=PICTURE_LIMIT)
        with open_picture((link.url, part)) as image:
            crop(image, link.box).save(part.with_suffix(".new"), format="PNG")
        part.with_suffix(".new").replace(face)
    except ValueError:
        dead.touch()
    part.unlink(missing_ok=True)


def crop(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    left, top, right, bottom = box
    inside = (max(left, 0), max(top, 0), min(right, image.width), min(bottom, image.height))
    if inside[0] >= inside[2] or inside[1] >= inside[3]:
        raise ValueError(f"the box {box} lies outside a picture of {image.size}: get the list again")
    return image.convert("RGB").crop(inside).resize(SIZE, Image.Resampling.LANCZOS)


FACESCRUB = FaceScrub("FaceScrub, colour 64x64 faces of up to 530 people, made from its list of links or your own copy")
