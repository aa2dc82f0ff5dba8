"""Fashion-MNIST: 20,000 of its 70,000 pictures of clothes, embedded in the package (MIT licence)."""

from dataclasses import replace
from importlib.resources import as_file, files

from attcem.data.entry import Embedded
from attcem.data.source import Source

CLASS_NAMES = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)


def read() -> Source:
    """The embedded arrays."""
    with as_file(files("attcem.data") / "fashion.npz") as path:
        return replace(Source.read(path), class_names=CLASS_NAMES)


FASHION = Embedded("Fashion-MNIST, 18,000 + 2,000 grey 28x28 pictures of clothes, embedded", read)
