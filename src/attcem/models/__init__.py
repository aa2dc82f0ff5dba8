"""Networks cut in two: named backbones, or any module of yours."""

from attcem.models.bottleneck import Bottleneck
from attcem.models.mobilenet import MobileNetV2
from attcem.models.named import ACTIVATIONS
from attcem.models.resnet import ResNet
from attcem.models.split import Split, build_split, check_weights, split
from attcem.models.units import Backbone
from attcem.models.vgg import VGG, VGG11, VGG13

BACKBONES: dict[str, Backbone] = {
    "vgg11": VGG(VGG11, norm=False),
    "vgg13": VGG(VGG13, norm=False),
    "vgg11_bn": VGG(VGG11, norm=True),
    "vgg13_bn": VGG(VGG13, norm=True),
    "resnet20": ResNet((16, 32, 64), (3, 3, 3)),
    "resnet32": ResNet((16, 32, 64), (5, 5, 5)),
    "resnet18": ResNet((64, 128, 256, 512), (2, 2, 2, 2)),
    "mobilenetv2": MobileNetV2(),
}
"""Name → builder. A new backbone is its file and its line here."""

__all__ = ["ACTIVATIONS", "BACKBONES", "Backbone", "Bottleneck", "Split", "build_split", "check_weights", "split"]
