"""Networks cut in two: named backbones, or any module of yours."""

from attcem.models.backbones import BACKBONES
from attcem.models.crossings import CROSSINGS, Crossing
from attcem.models.named import ACTIVATIONS
from attcem.models.split import Split, build_split, check_weights, split
from attcem.models.units import Backbone

__all__ = [
    "ACTIVATIONS",
    "BACKBONES",
    "CROSSINGS",
    "Backbone",
    "Crossing",
    "Split",
    "build_split",
    "check_weights",
    "split",
]
