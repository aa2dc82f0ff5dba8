import torch
from torch import nn

from attcem.metrics.cost import multiplications


def test_multiplications_are_those_of_the_closed_form():
    network = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5))
    assert multiplications(network, torch.zeros(1, 3, 6, 6)) == 36 * 8 * 27 + 8 * 36 * 5
