"""FaceScrub (Ng & Winkler 2014): published as a list of links, so it is made from the list or from your own copy."""

import logging
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from attcem.data.archive import members
from attcem.data.entry import Cached, Request
from attcem.data.facescrub_links import SIZE, fetch_faces, read_links
from attcem.data.fetch import wrong_checksum
from attcem.data.imagefolder import pictures_by_class
from attcem.data.pictures import Labelled, decode, is_picture
from attcem.data.source import Source

HOW = (
    "facescrub has no archive to download: ask for its list at http://vintage.winklerbros.net/facescrub.html, then "
    "type: attcem data get facescrub --from facescrub_actors.txt (or the folder with both lists); "
    "a zip, tar or folder of <person>/<pictures> also does"
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FaceScrub(Cached):
    """A data set that only its users can put together."""

    def get(self, request: Request) -> Path:
        """Make the cache's file from a list of links, or from a folder or archive of <person>/<pictures>."""
        if request.source is None and request.target.exists():
            return request.target
        if request.source is None:
            raise ValueError(HOW)
        if not (request.source.is_file() or request.source.is_dir()):
            raise ValueError(f"{request.source} does not exist, or is neither file nor folder. {HOW}")
        _verify(request.source, request.checksum)
        lists = _lists(request.source)
        if not lists:
            return source_of(list(_own_copy(request.source, request.progress)), request.progress).write(request.target)
        links = [link for path in lists for link in read_links(path)]
        workshop = request.root / "facescrub.part"
        faces = fetch_faces(links, workshop, progress=request.progress)
        log.warning("facescrub: %s of %s links still give their picture", f"{len(faces):,}", f"{len(links):,}")
        written = source_of(faces, request.progress).write(request.target)
        shutil.rmtree(workshop)
        return written


def source_of(faces: Labelled, progress: bool) -> Source:
    """64x64 colour faces, people in order of name."""
    if not faces:
        raise ValueError(f"no face was found. {HOW}")
    people = sorted({person for person, _ in faces})
    return Source(*decode(faces, people, size=SIZE, grey=False, progress=progress), class_names=tuple(people))


def _verify(source: Path, checksum: str | None) -> None:
    if checksum and source.is_dir():
        raise ValueError(f"{source} is a folder, which has no checksum: leave --checksum out")
    if checksum and (problem := wrong_checksum(source, [checksum])):
        raise ValueError(f"{source} {problem}: give the file you trust, or its own checksum")


def _lists(source: Path) -> list[Path]:
    """The lists of links at this path, if that is what it holds."""
    candidates = sorted(source.glob("facescrub_act*.txt")) if source.is_dir() else [source]
    return [path for path in candidates if path.suffix.lower() == ".txt" and path.is_file()]


def _own_copy(source: Path, progress: bool) -> Iterator[tuple[str, tuple[str, bytes | Path]]]:
    """Person and picture: the folder that holds a picture names the person."""
    if source.is_dir():
        yield from pictures_by_class(source, source.resolve())
        return
    for name, content in members(source, progress=progress):
        parts = PurePosixPath(name).parts
        if is_picture(name) and len(parts) > 1:
            yield parts[-2], (name, content)


FACESCRUB = FaceScrub("FaceScrub, colour 64x64 faces of up to 530 people, made from its list of links or your own copy")
