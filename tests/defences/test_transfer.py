"""A borrowed encoder starts as it was, and stays so or learns slowly."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch

import attcem
from attcem.cli import main
from attcem.defences import Noise, Transfer
from attcem.models import split
from attcem.train import fit

TINY = [
    "--model.width",
    "0.05",
    "--model.cut",
    "4",
    "--train.epochs",
    "1",
    "--audit.suite",
    "smoke",
    "--audit.images",
    "8",
]


def network(data, seed):
    torch.manual_seed(seed)
    return split("vgg11_bn", data=data, cut=4, bottleneck=4, width=0.05)


@pytest.fixture(scope="module")
def protected(small, tmp_path_factory):
    folder, model = tmp_path_factory.mktemp("protected"), network(small, 0)
    fit(model, Noise(0.1), small, epochs=1, out=folder, progress=False)
    return folder, model.encoder.state_dict()


def test_frozen_it_stays_bit_for_bit_and_the_cloud_learns(small, protected):
    folder, weights = protected
    model = network(small, 1)
    cloud = {name: tensor.clone() for name, tensor in model.decoder.state_dict().items()}
    fit(model, Noise(0.1) + Transfer(str(folder)), small, epochs=1, progress=False)
    assert all(torch.equal(weights[name], tensor) for name, tensor in model.encoder.state_dict().items())
    assert any(not torch.equal(cloud[name], tensor) for name, tensor in model.decoder.state_dict().items())


def test_slow_it_moves_less_than_fast(small, protected):
    folder, weights = protected
    moved = {}
    for rate in (0.01, 1.0):
        model = network(small, 1)
        fit(model, Noise(0.1) + Transfer(str(folder), rate=rate), small, epochs=1, progress=False)
        trained = dict(model.encoder.named_parameters())
        moved[rate] = sum((trained[name] - weights[name]).square().sum().item() for name in trained)
    assert 0 < moved[0.01] < 0.2 * moved[1.0]


def test_a_finished_run_needs_its_source_no_more(tmp_path, small):
    first, second = tmp_path / "first", tmp_path / "second"
    np.savez(tmp_path / "few.npz", x_train=small.private.x, y_train=small.private.y)
    tiny = [*TINY, "--data.name", f"npz:{tmp_path / 'few.npz'}"]
    main(["run", *tiny, "--out", str(first)])
    main(["run", *tiny, "--defence.transfer.start_from", str(first), "--out", str(second)])
    theirs = attcem.load_run(first)[0].encoder.state_dict()
    shutil.rmtree(first)
    mine = attcem.load_run(second)[0].encoder.state_dict()
    assert all(torch.equal(theirs[name], mine[name]) for name in theirs)


def test_without_a_run_to_start_from_it_says_what_to_give(small):
    with pytest.raises(ValueError, match="start_from=runs"):
        fit(network(small, 0), Transfer(), small, epochs=1, progress=False)
    with pytest.raises(ValueError, match="between 0"):
        Transfer("runs/x", rate=2.0)
    with pytest.raises(ValueError, match="no checkpoint in"):
        fit(network(small, 0), Transfer("nowhere"), small, epochs=1, progress=False)
