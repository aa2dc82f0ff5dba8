"""The options of the clustered penalty: kept under their names, and refused where they make no sense."""

from __future__ import annotations

import inspect
from dataclasses import replace

import pytest
import torch

from attcem.defences import NOISE, Noise
from attcem.defences.gmm import GMM
from tests.defences.clustered import example, fitted, made


def test_the_scale_is_a_factor_and_readings_show_the_clusters():
    batch, defence, double = replace(example(), watched=True), fitted(), fitted(loss_scale=2.0)
    torch.testing.assert_close(2 * defence.penalty(batch), double.penalty(batch))
    assert batch.readings["slot_mass"].shape == (5,) and batch.readings["slot_mass"].sum() == pytest.approx(1)


def test_options_are_kept_under_their_names():
    options = {"lam": 2.0, "form": "logdet", "clusters": 4, "tokens": "pooled", "threshold": "constant"}
    options |= {"var_threshold": 0.2, "gamma": 0.1, "loss_scale": 0.5, "warmup": 3}
    defence = GMM(**options)
    assert {name: getattr(defence, name) for name in options} == options
    assert set(options) == set(inspect.signature(GMM).parameters)


@pytest.mark.parametrize(
    ("form", "threshold", "needs"),
    [
        ("logdet", "constant", True),
        ("hinge", "noise", True),
        ("hinge", "schedule", True),
        ("hinge", "constant", False),
        ("hinge", "quantile", False),
        ("variance", "noise", False),
    ],
)
def test_noise_is_needed_where_it_is_measured_against(form, threshold, needs):
    assert (NOISE in GMM(form=form, threshold=threshold).needs) is needs
    if needs:
        with pytest.raises(ValueError, match="add Noise"):
            made(sigma=0.0, form=form, threshold=threshold)
    else:
        assert fitted(sigma=0.0, form=form, threshold=threshold).penalty(example()) > 0


def test_a_chain_knows_its_noise():
    chain = Noise(0.3) + GMM()
    chain.setup(latent=(4,), classes=3, sigma=chain.sigma)
    assert chain.links[1].sigma_n == 0.3


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match=r"shrink the loss by itself.*'flat' or tokens='spatial' or tokens='pooled'"):
        GMM(tokens="project")
    with pytest.raises(ValueError, match="did you mean 'spatial'"):
        GMM(tokens="spacial")
    with pytest.raises(ValueError, match="did you mean 'logdet'"):
        GMM(form="logdt")
    with pytest.raises(ValueError, match="did you mean 'quantile'"):
        GMM(threshold="quantil")
    for wrong in ({"clusters": 0}, {"gamma": 0.0}):
        with pytest.raises(ValueError, match=r"clusters=5 and gamma=0.01"):
            GMM(**wrong)
