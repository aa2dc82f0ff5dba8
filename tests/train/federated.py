"""Small federated trainings that can be looked into."""

import torch

from attcem.config import ClientsConfig, TrainConfig
from attcem.defences import Guard
from attcem.models import split
from attcem.train.federated import Federated
from tests.conftest import shrink

SYNCS = ("epoch", "batch", "shared")
UNLIKE = ClientsConfig(count=3, partition="dirichlet", alpha=0.5)


def few_of(fashion):
    return shrink(fashion, private=240, validation=80, public=20, test=20)


def network(data, backbone="vgg11_bn", width=0.05):
    torch.manual_seed(0)
    return split(backbone, data=data, cut=4, bottleneck=4, width=width)


def run(data, guard, clients=UNLIKE, *, model=None, **options):
    """A federated training that can be looked into, not yet started."""
    config = TrainConfig(**{"epochs": 1, "batch": 32} | options)
    return Federated(
        model or network(data), Guard.of(guard), data, clients, config=config, seed=0, out=None, progress=False
    )


def all_epochs(training):
    training.start(resume=False)
    while training.state.epoch < training.config.epochs:
        training.epoch()
    return training


def same(ours, theirs):
    return ours.keys() == theirs.keys() and all(
        torch.allclose(ours[name], theirs[name], rtol=0, atol=0, equal_nan=True) for name in ours
    )
