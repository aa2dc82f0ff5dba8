"""The table of named backbones, and the description from which one is built and cut."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from torch import nn

from attcem.models.convolutional import VGG, VGG11, VGG13, MobileNetV2, ResNet
from attcem.models.crossings import Crossing, Map, describe_crossing, read_crossing
from attcem.models.units import Backbone, Shape, shape_after
from attcem.models.vit import VisionTransformer
from attcem.naming import look_up
from attcem.types import Images

SPEC = ("backbone", "shape", "classes", "cut", "crossing", "width", "activation")
SMALLEST_SIDE = 28
WIDEST = 1000

BACKBONES: dict[str, Backbone] = {
    "vgg11": VGG(VGG11, norm=False),
    "vgg13": VGG(VGG13, norm=False),
    "vgg11_bn": VGG(VGG11, norm=True),
    "vgg13_bn": VGG(VGG13, norm=True),
    "resnet20": ResNet((16, 32, 64), (3, 3, 3)),
    "resnet32": ResNet((16, 32, 64), (5, 5, 5)),
    "resnet18": ResNet((64, 128, 256, 512), (2, 2, 2, 2)),
    "mobilenetv2": MobileNetV2(),
    "vit": VisionTransformer(),
}
"""Name → builder. A new backbone is its file and its line here."""

ACTIVATIONS: dict[str, type[nn.Module]] = {"none": nn.Identity, "relu": nn.ReLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh}
"""What bounds the latent, last in the encoder. An unbounded one lets a network escape additive noise by scaling up."""


@runtime_checkable
class ImageData(Protocol):
    """What a split asks of a dataset: `attcem.load_data` returns one. Its normalisation is measured on `private`."""

    @property
    def shape(self) -> tuple[int, int, int]: ...
    @property
    def classes(self) -> int: ...
    @property
    def private(self) -> Images: ...


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
    """The checked JSON-able description from which `build_split` builds: its keys are SPEC."""
    builder = look_up("backbone", backbone, BACKBONES)
    look_up("activation", activation, ACTIVATIONS)
    if bottleneck is not None and crossing is not None:
        raise ValueError("give bottleneck= or crossing=, not both: a bottleneck is the crossing {map: …}")
    chosen = read_crossing(crossing) if bottleneck is None else Map.of(bottleneck)
    cut = getattr(builder, "cut", None) if cut is None else cut
    if cut is None:
        raise ValueError(f"backbone {backbone!r} names no default cut: give cut=")
    check_sizes(shape, classes, width)
    return {
        "backbone": backbone,
        "shape": [int(side) for side in shape],
        "classes": classes,
        "cut": cut,
        "crossing": describe_crossing(chosen),
        "width": float(width),
        "activation": activation,
    }


def list_cuts(units: nn.Sequential, shape: Shape) -> str:
    cuts = []
    for number, (name, unit) in enumerate(list(units.named_children())[:-1], 1):
        shape = shape_after(unit, shape)
        cuts.append(f"cut={number} (after {name}, {'×'.join(map(str, shape))})")
    return f"choose from (with the latent before any bottleneck): {', '.join(cuts)}"


def check_sizes(shape: Sequence[int], classes: int, width: float) -> None:
    if len(shape) != 3:
        raise ValueError(f"shape must be (channels, height, width), not {tuple(shape)}")
    if shape[0] not in (1, 3):
        raise ValueError(f"images must have 1 or 3 channels, not {shape[0]}: shape is (channels, height, width)")
    if min(shape[1:]) < SMALLEST_SIDE:
        raise ValueError(
            f"images of {shape[1]}×{shape[2]} are too small: "
            f"resize them to at least {SMALLEST_SIDE}×{SMALLEST_SIDE}, or split your own module with at="
        )
    if isinstance(classes, bool) or not isinstance(classes, int) or classes < 2:
        raise ValueError(f"classes must be a whole number of at least 2, not {classes!r}")
    if not (isinstance(width, int | float) and 0 < width <= WIDEST):
        raise ValueError(
            f"width multiplies the channel counts and must be above 0, at most {WIDEST}, not {width!r}: "
            "1.0 is the original"
        )
