"""A penalty that can vanish without the encoder is found out; one that cannot is not accused."""

import pytest
import torch

from attcem.defences import create_defence
from attcem.train import honesty_flags
from attcem.train.honesty import surrogate_only
from attcem.types import Batch

LATENT = (4, 3, 3)


@pytest.fixture
def latents():
    def batch(seed):
        generator = torch.Generator().manual_seed(seed)
        y = torch.arange(32) % 4
        return Batch(
            torch.zeros(32, 1, 2, 2), y, torch.randn(32, *LATENT, generator=generator) + y[:, None, None, None]
        )

    return [batch(seed) for seed in range(6)]


def made(name, **options):
    defence = create_defence(name, **options)
    defence.setup(latent=LATENT, classes=4, sigma=0.3)
    return defence


@pytest.mark.parametrize(
    ("name", "options"), [("gated", {"form": "gates"}), ("slot", {"form": "mixture"})], ids=["gated", "slot"]
)
def test_forms_whose_gates_can_close_deceive_themselves(name, options, latents):
    assert surrogate_only(made(name, **options), latents) > 0.9


@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_the_bound_loses_slack_but_never_falls_below_what_is_told(assign, latents):
    defence = made("bound", assign=assign, tokens="spatial", slots=3)
    fall = surrogate_only(defence, latents)
    assert -0.01 < fall < 0.5


def test_without_parameters_of_its_own_nothing_falls(latents):
    assert surrogate_only(made("bound"), latents) == 0.0


def test_the_surrogate_itself_is_left_as_it_was(latents):
    defence = made("gated")
    before = {name: value.clone() for name, value in defence.state_dict().items()}
    surrogate_only(defence, latents, steps=3)
    assert all(torch.equal(value, before[name]) for name, value in defence.state_dict().items())
    assert defence.training and all(p.grad is None for p in defence.parameters())


def test_only_a_fall_by_more_than_half_is_worth_a_word_and_a_bound_is_not_accused():
    assert honesty_flags("gated", 0.5, False) == []
    (flag,) = honesty_flags("gated", 0.97, False)
    assert "says nothing about what leaks" in flag and "97%" in flag
    assert "stays an upper bound" in honesty_flags("bound", 0.6, True)[0]
