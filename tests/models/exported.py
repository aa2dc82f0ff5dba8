"""Exports both halves of every crossing as graphs for any number of pictures, and prints which agree with Python."""

import torch
from torch import Tensor, nn

from attcem.defences import Noise
from attcem.models import Split, split
from attcem.models.crossings import CROSSINGS

BATCH = torch.export.Dim("batch")


class Device(nn.Module):
    """Image and noise in, what is sent out: the randomness is an input."""

    def __init__(self, model: Split) -> None:
        super().__init__()
        self.encoder, self.guard = model.encoder, Noise(sigma=0.1)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """What leaves the device."""
        return self.guard.release(self.encoder(x), noise)


def check(half: nn.Module, *inputs: Tensor) -> None:
    """Raise unless the graph agrees with Python, for another number of pictures too, and draws nothing."""
    program = torch.export.export(half, inputs, dynamic_shapes=tuple({0: BATCH} for _ in inputs))
    fewer = [each[:2] for each in inputs]
    torch.testing.assert_close(program.module()(*fewer), half(*fewer))
    assert not any(word in str(node.target) for node in program.graph.nodes for word in ("rand", "dropout", "normal_"))


FORMS = [(name, {}) for name in CROSSINGS] + [("pool", {"condense": 9})]

for name, options in FORMS:
    torch.manual_seed(0)
    crossing = {name: options | {"cloud": "backbone"}}
    model = split("vgg11_bn", shape=(3, 32, 32), classes=7, cut=4, width=0.1, crossing=crossing).eval()
    x, noise = torch.rand(3, 3, 32, 32), torch.randn(3, *model.latent_shape)
    device = Device(model).eval()
    check(device, x, noise)
    check(model.decoder, device(x, noise))
    print(name)
