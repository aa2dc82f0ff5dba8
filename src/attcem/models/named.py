"""The door for named backbones: build the units, slice them at the cut, dress both ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import nn

from attcem.models.backbones import BACKBONES
from attcem.models.crossings import Crossing, Map, describe_crossing, insert, read_crossing
from attcem.models.normalise import Normalise, channel_statistics
from attcem.models.units import shape_after
from attcem.naming import look_up
from attcem.types import Images

SPEC = ("backbone", "shape", "classes", "cut", "crossing", "width", "activation")
SMALLEST_SIDE = 28
WIDEST = 1000

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "none": nn.Identity,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "tanh": nn.Tanh,
}
"""What bounds the latent, last in the encoder. An unbounded one lets a network escape additive noise by scaling up."""


@runtime_checkable
class ImageData(Protocol):
    """What a split asks of a dataset: `attcem.load_data` returns one."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width of one image."""

    @property
    def classes(self) -> int:
        """How many classes the labels tell apart."""

    @property
    def private(self) -> Images:
        """The images the normalisation is measured on."""


def named_spec(
    backbone: str,
    *,
    shape: Sequence[int],
    classes: int,
    cut: int | None = None,
    bottleneck: Map | Mapping[str, int] | int | None = None,
    crossing: Crossing | Mapping[str, Any] | str | None = None,
    width: float = 1.0,
    activation: str = "sigmoid",
) -> dict[str, Any]:
    """The checked JSON-able description from which `build_halves` builds: its keys are SPEC."""
    builder = look_up("backbone", backbone, BACKBONES)
    look_up("activation", activation, ACTIVATIONS)
    if bottleneck is not None and crossing is not None:
        raise ValueError("give bottleneck= or crossing=, not both: a bottleneck is the crossing {map: …}")
    chosen = read_crossing(crossing) if bottleneck is None else Map.of(bottleneck)
    cut = getattr(builder, "cut", None) if cut is None else cut
    if cut is None:
        raise ValueError(f"backbone {backbone!r} names no default cut: give cut=")
    return {
        "backbone": backbone,
        "shape": check_shape(shape),
        "classes": check_classes(classes),
        "cut": cut,
        "crossing": describe_crossing(chosen),
        "width": check_width(width),
        "activation": activation,
    }


def build_halves(spec: Mapping[str, Any]) -> tuple[nn.Sequential, nn.Sequential, tuple[int, ...]]:
    """Encoder, decoder and the shape of one latent; the normalisation is neutral until statistics are copied in."""
    shape = tuple(spec["shape"])
    units = BACKBONES[spec["backbone"]](shape, spec["classes"], spec["width"])
    cut = spec["cut"]
    if isinstance(cut, bool) or not isinstance(cut, int) or not 1 <= cut < len(units):
        raise ValueError(f"cut={cut!r} does not exist in {spec['backbone']!r}; {list_cuts(units, shape)}")
    front, back = units[:cut], units[cut:]
    encoder, decoder = nn.Sequential(), nn.Sequential()
    encoder.add_module("normalise", Normalise([0.5] * shape[0], [0.25] * shape[0]))
    encoder.add_module("units", front)
    crossing, latent = read_crossing(spec["crossing"]), shape_after(encoder, shape)
    if crossing is None:
        decoder.add_module("units", back)
    else:
        latent = insert(crossing, encoder, decoder, back, features=latent, classes=spec["classes"])
    encoder.add_module("activation", ACTIVATIONS[spec["activation"]]())
    return encoder, decoder, latent


def measure_normalisation(encoder: nn.Module, images: Images) -> None:
    """Copy the channel statistics of the private images into the encoder's first module."""
    mean, std = channel_statistics(images.x)
    encoder.get_submodule("normalise").load_state_dict(Normalise(mean, std).state_dict())


def list_cuts(units: nn.Sequential, shape: tuple[int, ...]) -> str:
    """Every valid cut with the unit it comes after and the latent it gives."""
    cuts = []
    for number, (name, unit) in enumerate(list(units.named_children())[:-1], 1):
        shape = shape_after(unit, shape)
        cuts.append(f"cut={number} (after {name}, {'×'.join(map(str, shape))})")
    return f"choose from (with the latent before any bottleneck): {', '.join(cuts)}"


def check_shape(shape: Sequence[int]) -> list[int]:
    """Channels, height, width as a list, which is what JSON gives back."""
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width), not {tuple(shape)}")
    if shape[0] not in (1, 3):
        raise ValueError(f"images must have 1 or 3 channels, not {shape[0]}: shape is (channels, height, width)")
    if min(shape[1:]) < SMALLEST_SIDE:
        raise ValueError(
            f"images of {shape[1]}×{shape[2]} are too small: "
            f"resize them to at least {SMALLEST_SIDE}×{SMALLEST_SIDE}, or split your own module with at="
        )
    return [int(side) for side in shape]


def check_classes(classes: int) -> int:
    """At least two classes."""
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < 2:
        raise ValueError(f"classes must be a whole number of at least 2, not {classes!r}")
    return classes


def check_width(width: float) -> float:
    """A positive factor of a reasonable size."""
    if not (isinstance(width, int | float) and 0 < width <= WIDEST):
        raise ValueError(
            f"width multiplies the channel counts and must be above 0, at most {WIDEST}, not {width!r}: "
            "1.0 is the original"
        )
    return float(width)
