"""The AT&T (ORL) Database of Faces: 40 people, 10 grey pictures each. Credit: AT&T Laboratories Cambridge."""

import re
from pathlib import Path, PurePosixPath

from attcem.data.archive import members
from attcem.data.entry import Published
from attcem.data.pictures import Picture, decode
from attcem.data.source import Source

ARCHIVE = "https://www.cl.cam.ac.uk/Research/DTG/attarchive/pub/data/att_faces.zip"
SIZE = (92, 112)
PERSON, PICTURE = re.compile(r"s(\d{1,4})"), re.compile(r"(\d{1,4})\.pgm")


def parse(path: Path, progress: bool) -> Source:
    """Read sN/M.pgm; the order is M, then N, so that the first few pictures show many people."""
    faces: dict[tuple[int, int], Picture] = {}
    for name, content in members(path, progress=progress):
        parts = ("", *PurePosixPath(name).parts)
        person, picture = PERSON.fullmatch(parts[-2]), PICTURE.fullmatch(parts[-1])
        if person and picture:
            faces[int(picture[1]), int(person[1])] = (name, content)
    if not faces:
        raise ValueError(f"{path.name} has no members like s1/1.pgm: get the archive of {ARCHIVE}")
    people = tuple(f"s{person}" for person in sorted({person for _, person in faces}))
    in_order = [(f"s{person}", picture) for (_, person), picture in sorted(faces.items())]
    return Source(*decode(in_order, people, size=SIZE, grey=True, progress=progress), class_names=people)


ORL = Published(
    "ORL faces, 400 grey 112x92 pictures of 40 people; the test set is drawn",
    {ARCHIVE: "md5:6efb25cb0d40755e9492b9c012e3348d"},
    parse,
)
