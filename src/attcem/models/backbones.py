"""The table of named backbones."""

from attcem.models.mobilenet import MobileNetV2
from attcem.models.resnet import ResNet
from attcem.models.units import Backbone
from attcem.models.vgg import VGG, VGG11, VGG13
from attcem.models.vit import VisionTransformer

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
