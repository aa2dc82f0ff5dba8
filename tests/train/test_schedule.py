import pytest
import torch

from attcem.config import TrainConfig
from attcem.train.schedule import RECIPES, multi_step, one_cycle, recipe_for


def test_multi_step_drops_three_times():
    assert [multi_step(p) for p in (0, 0.24, 0.25, 0.5, 0.8)] == pytest.approx([1, 1, 0.2, 0.04, 0.008])


def test_one_cycle_rises_peaks_and_falls_to_zero():
    values = [one_cycle(i / 1000) for i in range(1000)]
    peak = values.index(max(values))
    assert 0 < values[0] < 0.01 and values[peak] == pytest.approx(1, abs=0.01) and values[-1] < 1e-4
    assert values[:peak] == sorted(values[:peak]) and values[peak:] == sorted(values[peak:], reverse=True)


@pytest.mark.parametrize(
    ("rate", "fine_tuning", "expected"),
    [(0.05, False, 0.02), (4e-4, False, 1.0), (0.05, True, 1.0), (5e-4, False, 2.0)],
)
def test_penalty_weight_is_that_of_the_original(rate, fine_tuning, expected):
    assert RECIPES["original"].penalty_weight(rate, fine_tuning) == pytest.approx(expected)
    assert RECIPES["modern"].penalty_weight(rate, fine_tuning) == 1.0


def test_configuration_overrides_the_recipe():
    recipe = recipe_for(TrainConfig(recipe="original", lr=0.3, w_lr=False))
    assert recipe.lr == 0.3 and recipe.penalty_weight(0.3, False) == 1.0
    assert recipe.weight_decay == RECIPES["original"].weight_decay


def test_unknown_recipe_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'modern'"):
        recipe_for(TrainConfig(recipe="modren"))  # type: ignore[arg-type]


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_parameter_is_in_exactly_one_group(recipe):
    weights, own = [torch.nn.Parameter(torch.ones(2))], [torch.nn.Parameter(torch.ones(3))]
    groups = RECIPES[recipe].optimiser(weights, own).param_groups
    assert [group["params"] for group in groups] == [weights, own]
    assert groups[1]["weight_decay"] == 0
