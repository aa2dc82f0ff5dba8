"""A network that is exported in seconds."""

import torch

from attcem.defences import Guard
from attcem.models import split

SHAPE, CLASSES = (1, 28, 28), 5


def network():
    torch.manual_seed(0)
    return split("vgg11_bn", shape=SHAPE, classes=CLASSES, cut=3, width=0.05, crossing={"pool": {"condense": 7}}).eval()


def guarded(model, *links):
    guard = Guard(*links)
    guard.setup(latent=model.latent_shape, classes=CLASSES, sigma=guard.sigma)
    guard.attach(model.encoder)
    return guard.eval()
