"""How much of a decoder attack's time goes into the decoder: the victim's encoder and the noise should cost little."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F

from attcem.attacks import ATTACKS
from attcem.attacks.decoder import Decoder
from attcem.attacks.inversion import Inversion
from attcem.data import Data
from attcem.defences import Noise
from attcem.models import split
from attcem.threat import build_view
from attcem.types import Images
from benchmarks.harness import Figure, ratio

STEPS = 5


def figures() -> Iterator[Figure]:
    """Throughput of the attack's own step against the decoder's bare forward, backward and optimiser step."""
    attack = ATTACKS["decoder_medium"]
    assert isinstance(attack, Decoder)
    training = victim_under(attack)
    endless = batches(training, attack.batch)
    released, x = next(endless)

    def attacking() -> None:
        for _ in range(STEPS):
            training.step(*next(endless), rate=1e-4)

    def bare() -> None:
        for _ in range(STEPS):
            training.optimiser.zero_grad(set_to_none=True)
            F.mse_loss(training.network(released), x).backward()
            training.optimiser.step()

    yield Figure("attack training throughput / bare decoder", 1 / ratio(attacking, bare), 0.9, at_least=True)


def victim_under(attack: Decoder) -> Inversion:
    """The attack on an untrained network at full width with noise: speed does not depend on its weights."""
    torch.manual_seed(0)
    pictures = Images(torch.randint(0, 256, (2560, 32, 32, 3), dtype=torch.uint8), torch.arange(2560) % 10)
    names = tuple(map(str, range(10)))
    data = Data("random", pictures[:10], pictures[:10], pictures, pictures[:64], names, {})
    model = split("vgg11_bn", data=data, cut=4, bottleneck=8)
    view, _ = build_view(model, Noise(0.1), data, images=64)
    return Inversion(attack, view, seed=0)


def batches(training: Inversion, size: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless batches of one recorded copy of the public images."""
    while True:
        yield from training.pairs.epoch(0, size)
