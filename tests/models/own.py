"""Modules of one's own to cut, and what the door says when it refuses."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from attcem.models import split


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv2(self.relu(self.bn1(self.conv1(x))))
        return self.relu(out + x)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layer1 = nn.Sequential(Block(), Block())
        self.layer2 = nn.Sequential(Block(), Block())
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x, scale=2.0, mask=None):
        x = self.layer2(self.layer1(self.stem(x))) * scale
        x = x if mask is None else x * mask
        return self.fc(self.drop(x.mean((2, 3))))


class Scales(nn.Module):
    """Parameters and buffers that forward reads directly, before the cut, after it, or on both sides."""

    def __init__(self, before, after):
        super().__init__()
        self.layer, self.fc = nn.Conv2d(3, 3, 1), nn.Linear(3, 5)
        self.first, self.second = nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(3))
        self.register_buffer("mean", torch.rand(3))
        self.before, self.after = before, after

    def forward(self, x):
        one, two = getattr(self, self.before).view(-1, 1, 1), getattr(self, self.after).view(-1, 1, 1)
        x = self.layer(x * one) * two + torch.ones(1)
        return self.fc(x.mean((2, 3)))


def plain():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def images(n=2, side=8):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


def advised(message):
    return re.search(r"these names give a clean cut: (.*)$", message).group(1).split(", ")


def refusal(module, at="layer", x=None, **options):
    with pytest.raises(ValueError) as error:
        split(module, at=at, example=images() if x is None else x, **options)
    return str(error.value)
