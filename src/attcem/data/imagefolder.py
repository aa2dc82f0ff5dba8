"""A folder of pictures, one subfolder per class: PATH/<class>/*, or PATH/train/<class>/* with PATH/test|val."""

from collections import Counter
from functools import partial
from itertools import chain
from pathlib import Path

from attcem.data.entry import Given
from attcem.data.pictures import GREY_MODES, Labelled, Picture, decode, is_picture, open_picture
from attcem.data.source import SMALLEST, Source
from attcem.types.mapped import MEMORY


def read(path: Path, memory: int = MEMORY, progress: bool = True) -> Source:
    """Read the folder; every picture becomes the most common size and mode."""
    train, test = find(path)
    names = sorted({name for name, _ in train})
    if strangers := sorted({name for name, _ in test} - set(names)):
        raise ValueError(f"{path}: class {strangers[0]!r} has test pictures but no folder in train: add or remove it")
    size, grey = common_form([picture for _, picture in chain(train, test)])
    if min(size) < SMALLEST:
        advice = f"resize to at least {SMALLEST}x{SMALLEST}"
        raise ValueError(f"{path}: most pictures have {size[1]}x{size[0]} pixels: {advice}")
    arrays = partial(decode, classes=names, size=size, grey=grey, progress=progress, memory=memory)
    x_test, y_test = arrays(test) if test else (None, None)
    return Source(*arrays(train), x_test, y_test, class_names=tuple(names))


def find(path: Path) -> tuple[Labelled, Labelled]:
    """The pictures of training and of test; the latter is empty when the folder does not tell them apart."""
    if not path.is_dir():
        raise ValueError(f"{path} is not a folder: give the path of a folder with one subfolder per class")
    root = path.resolve()
    if not _classes(path / "train", root):
        return pictures_by_class(path, root), []
    held_out = [path / name for name in ("test", "val") if _classes(path / name, root)]
    return pictures_by_class(path / "train", root), pictures_by_class(held_out[0], root) if held_out else []


def pictures_by_class(folder: Path, root: Path) -> Labelled:
    """Every picture of every class folder, classes in turn, so that the first few pictures show many classes."""
    ranked = []
    for name in _classes(folder, root):
        files = [file for file in sorted((folder / name).iterdir()) if is_picture(file.name)]
        if not files:
            raise ValueError(f"{folder / name} has no pictures: add some or remove the folder")
        for file in files:
            _stay_inside(file, root)
            if not file.is_file():
                raise ValueError(f"{file} is no regular file, so it cannot hold a picture: remove or rename it")
        ranked += [(rank, name, (str(file), file)) for rank, file in enumerate(files)]
    if not ranked:
        raise ValueError(f"{folder} has no class folders: put the pictures of each class into a subfolder of its own")
    return [(name, picture) for _, name, picture in sorted(ranked)]


def common_form(pictures: list[Picture]) -> tuple[tuple[int, int], bool]:
    """The most common size, as width and height, and whether most pictures are grey; headers only."""
    forms = []
    for picture in pictures:
        with open_picture(picture, load=False) as image:
            forms.append((image.size, image.mode in GREY_MODES))
    return tuple(Counter(part).most_common(1)[0][0] for part in zip(*forms, strict=True))


def _classes(folder: Path, root: Path) -> list[str]:
    if not folder.is_dir():
        return []
    _stay_inside(folder, root)
    found = sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))
    for child in found:
        _stay_inside(child, root)
    return [child.name for child in found]


def _stay_inside(path: Path, root: Path) -> None:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # before Python 3.13, a loop is a RuntimeError
        raise ValueError(f"{path} is a link to itself or to nothing: remove it, or link to a file") from error
    if not target.is_relative_to(root):
        raise ValueError(f"{path} is a link that leaves {root}: copy its target into the folder")


IMAGEFOLDER = Given("your own pictures, imagefolder:PATH with one subfolder per class", read)
