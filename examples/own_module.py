"""Cut a module of your own at a named place; where the cut is not clean, the error names the places that are."""

from collections import OrderedDict

import torch
from torch import nn

import attcem


class Block(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.second(torch.relu(self.first(x))))


def network() -> nn.Sequential:
    head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, 10))
    return nn.Sequential(
        OrderedDict(stem=nn.Conv2d(1, 16, 3, 2, 1), layer1=Block(16), layer2=Block(16), head=head),
    )


def main(epochs: int = 5, suite: str = "demo") -> attcem.Result:
    data = attcem.load_data("fashion")
    example = data.private[:4].pixels()
    try:
        attcem.split(network(), at="layer1.first", example=example)
    except ValueError as error:
        print(error)
    model = attcem.split(network(), at="layer1", example=example)
    guard = attcem.Noise(sigma=0.5)
    attcem.fit(model, guard, data, epochs=epochs)
    return attcem.audit(model, guard, data, suite=suite)


if __name__ == "__main__":
    main()
