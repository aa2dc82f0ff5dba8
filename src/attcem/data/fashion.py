"""Fashion-MNIST: 20,000 of its 70,000 pictures of clothes, embedded in the package (MIT licence)."""

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from attcem.data.entry import Entry
from attcem.data.source import Source

NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")


class Embedded(Entry):
    """A data set that comes with the package."""

    nothing_to_get = "{name} comes with attcem: there is nothing to get, type: load_data({name!r})"

    def read(self, name: str, path: str, root: Path, memory: int) -> Source:
        with as_file(files("attcem.data") / "fashion.npz") as file:
            return replace(Source.read(file), class_names=NAMES)


FASHION = Embedded("Fashion-MNIST, 18,000 + 2,000 grey 28x28 pictures of clothes, embedded")
