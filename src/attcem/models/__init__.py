"""Networks cut in two: named backbones, or any module of yours."""

from attcem.models.crossings import CROSSINGS, Crossing, read_crossing
from attcem.models.crossings.attention import attends, attention_maps
from attcem.models.named import ACTIVATIONS, BACKBONES
from attcem.models.split import Split, build_split, check_weights, split

__all__ = [
    "ACTIVATIONS",
    "BACKBONES",
    "CROSSINGS",
    "Crossing",
    "Split",
    "attends",
    "attention_maps",
    "build_split",
    "check_weights",
    "read_crossing",
    "split",
]
