"""TinyImageNet: 200 of ImageNet's classes at 64x64; its val part, which has labels, is the test set."""

from functools import partial
from pathlib import Path, PurePosixPath

from attcem.data.archive import members
from attcem.data.entry import Published
from attcem.data.pictures import Labelled, Picture, decode, is_picture
from attcem.data.source import Source

SIZE = (64, 64)


def parse(path: Path, progress: bool) -> Source:
    """Collect the JPEGs, which are small, and decode them once all labels are known."""
    train: Labelled = []
    val: dict[str, Picture] = {}
    texts = {"val_annotations.txt": "", "words.txt": ""}
    for name, content in members(path, progress=progress):
        parts = PurePosixPath(name).parts
        if parts[-1] in texts:
            texts[parts[-1]] = content.decode("utf-8", "replace")
        elif is_picture(name) and len(parts) >= 4 and parts[-4] == "train":
            train.append((parts[-3], (name, content)))
        elif is_picture(name) and parts[-3:-1] == ("val", "images"):
            val[parts[-1]] = (name, content)
    wnids = sorted({wnid for wnid, _ in train})
    test = _annotated(texts["val_annotations.txt"], val, wnids)
    if not train or not test:
        missing = "train/<class>/images or no annotated val/images"
        raise ValueError(f"{path.name} has no {missing}: get the official archive")
    train.sort(key=lambda labelled: (PurePosixPath(labelled[1][0]).name, labelled[0]))
    arrays = partial(decode, classes=wnids, size=SIZE, grey=False, progress=progress)
    lines = (line.partition("\t") for line in texts["words.txt"].splitlines())  # wnid <tab> word, another word
    first_words = {wnid: words.split(",")[0].strip() for wnid, _, words in lines}
    names = tuple(first_words.get(wnid) or wnid for wnid in wnids)
    return Source(*arrays(train), *arrays(test), class_names=names)


def _annotated(text: str, val: dict[str, Picture], wnids: list[str]) -> Labelled:
    labelled = []
    for line in text.splitlines():
        file, wnid, *_ = [*line.split("\t"), ""]
        if file not in val:
            raise ValueError(f"val_annotations.txt names {file!r}, which is not in the archive: download it again")
        if wnid not in wnids:
            raise ValueError(f"val_annotations.txt gives {file!r} the class {wnid!r}, which has no training images")
        labelled.append((wnid, val[file]))
    return labelled


TINYIMAGENET = Published(
    "TinyImageNet, 100,000 + 10,000 colour 64x64 pictures of 200 things",
    {"http://cs231n.stanford.edu/tiny-imagenet-200.zip": "md5:90528d7ca1a48142e341f4ef8d21d0de"},
    parse,
)
