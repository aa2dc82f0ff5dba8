"""`python -m tests.train.training OUT`: a run of six epochs, which is begun or goes on."""

import sys

import torch

from attcem.data import load_data
from attcem.defences import Noise
from attcem.models import split
from attcem.train import fit
from tests.conftest import shrink
from tests.probes import Scaled

if __name__ == "__main__":
    data = shrink(load_data("fashion"), private=640, validation=100, public=100, test=100)
    torch.manual_seed(0)
    model = split("vgg11_bn", data=data, cut=4, bottleneck=8, width=0.125)
    fit(model, Noise(0.1) + Scaled(lam=0.1), data, epochs=6, out=sys.argv[1], resume=True)
