"""What a network costs, whatever the machine it runs on."""

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode


@torch.no_grad()
def multiplications(network: nn.Module, x: Tensor) -> float:
    """Of convolutions and matrix products, in evaluation mode: half of the usual FLOPs."""
    with FlopCounterMode(display=False) as counter:
        network(x)
    return counter.get_total_flops() / 2
