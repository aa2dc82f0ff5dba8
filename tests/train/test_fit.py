"""The loop: what it applies, what it skips, what it selects, and that it never looks at test data."""

import csv
import dataclasses
import sys
import types

import pytest
import torch

from attcem.data import Data
from attcem.defences import Noise, Undefended
from attcem.models import build_split, split
from attcem.train import evaluate, fit
from tests.probes import Blank, Poison, Scaled, Shrink


class Untouchable:
    """Stands where the test images would: touching it fails."""

    def __getattr__(self, name):
        raise AssertionError(f"training looked at test data ({name})")

    __len__ = __getitem__ = __iter__ = lambda self, *_: pytest.fail("training looked at test data")


def weights(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_training_learns_and_never_looks_at_test_data(network, small):
    blind = Data(**{f.name: getattr(small, f.name) for f in dataclasses.fields(small)} | {"test": Untouchable()})
    state = fit(network, Undefended(), blind, epochs=6, lr=0.05, progress=False)
    assert state.best_accuracy > 0.45
    assert evaluate(network, Undefended(), small.validation)[1] == pytest.approx(state.best_accuracy)
    assert state.best_accuracy == max(row["val_accuracy"] for row in state.history)


def test_blanking_the_latent_gives_chance_accuracy_in_training_and_evaluation(network, small):
    state = fit(network, Blank(), small, epochs=2, progress=False)
    assert all(row["accuracy"] < 0.2 and row["val_accuracy"] < 0.2 for row in state.history)
    assert evaluate(network, Undefended(), small.validation)[1] < 0.3


def test_release_noise_reaches_validation(network, small):
    fit(network, Undefended(), small, epochs=3, progress=False)
    clean, drowned = (evaluate(network, guard, small.validation)[1] for guard in (Undefended(), Noise(100)))
    assert drowned < clean - 0.2


def test_the_penalty_shapes_the_encoder_after_warm_up_only(network, small):
    state = fit(network, Shrink(lam=30, warmup=2), small, epochs=4, progress=False)
    assert [row["penalty"] > 0 for row in state.history] == [False, False, True, True]
    assert state.history[3]["penalty"] < 0.5 * 0.25  # a sigmoid latent starts around a mean square of .25
    assert state.best_epoch == 4  # epochs that the penalty has barely shaped are not candidates


def test_a_ramp_lets_the_penalty_in_slowly(small):
    def latent_size(ramp):
        torch.manual_seed(0)
        network = split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.125)
        return fit(network, Shrink(lam=30), small, epochs=2, ramp=ramp, progress=False).history[1]["penalty"]

    assert latent_size(0) < latent_size(1) < latent_size(10)


class Reviewing(Shrink):
    def review(self, batches):
        self.reviewed = [*getattr(self, "reviewed", []), sum(len(batch.y) for batch in batches)]
        assert not next(iter(batches), None)


def test_a_defence_reviews_all_private_images_after_each_epoch_that_its_penalty_follows(network, small):
    guard = Reviewing(warmup=2)
    fit(network, guard, small, epochs=4, progress=False)
    assert guard.reviewed == [len(small.private)] * 2


def test_a_penalty_that_never_starts_is_an_error(network, small):
    with pytest.raises(ValueError, match="raise epochs"):
        fit(network, Shrink(warmup=3), small, epochs=3, progress=False)


def test_the_defences_own_parameters_are_trained(network, small):
    guard = Scaled()
    fit(network, guard, small, epochs=1, progress=False)
    fresh = Scaled()
    fresh.setup(latent=network.latent_shape, classes=10, sigma=0)
    assert (guard.gain - fresh.gain).abs().max() > 1e-3


def test_nan_batches_are_skipped_counted_and_leave_no_trace(network, small):
    guard = Poison(release_at=[2, 4])
    state = fit(network, guard, small, epochs=1, progress=False)
    assert state.history[0]["skipped"] == 2 and state.cost["skipped_batches"] == 2
    assert guard.observed == 3  # five batches, two skipped
    assert all(t.isfinite().all() for t in network.state_dict().values())


def test_lost_penalties_are_counted(network, small):
    state = fit(network, Poison(penalty_at=[1, 2, 3]), small, epochs=1, progress=False)
    assert state.cost["lost_penalties"] == 3 and state.history[0]["skipped"] == 0


def test_an_epoch_without_a_single_finite_batch_is_an_error_that_says_what_to_do(network, small):
    with pytest.raises(ValueError, match=r"lower train\.lr"):
        fit(network, Poison(release_at=range(99)), small, epochs=1, progress=False)


def test_same_seed_same_weights_other_seed_other_weights(small):
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(0)
        model = split("vgg11_bn", data=small, cut=4, bottleneck=8, width=0.125)
        fit(model, Noise(0.1), small, epochs=1, seed=seed, progress=False)
        found.append(weights(model))
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


def test_the_callers_random_numbers_are_left_alone(network, small):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    fit(network, Noise(0.1), small, epochs=1, progress=False)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epohs": 3}, "did you mean 'epochs'"),
        ({"epochs": 0}, "at least 1"),
        ({"device": "cuda:7"}, "try auto or cpu"),
        ({"precision": "bfloat16", "device": "cpu"}, "use float32"),
        ({"lr": -1}, "must be positive"),
        ({"crop": 28}, "smaller than the image"),
    ],
)
def test_wrong_options_name_the_fix(network, small, options, message):
    with pytest.raises(ValueError, match=message):
        fit(network, Undefended(), small, progress=False, **options)


def test_double_precision(network, small):
    fit(network, Noise(0.1), small, epochs=1, precision="float64", progress=False)
    assert next(network.parameters()).dtype == torch.float64


def test_the_original_recipe_trains(network, small):
    state = fit(network, Undefended(), small, epochs=4, recipe="original", progress=False)
    assert [row["lr"] for row in state.history] == pytest.approx([0.05, 0.01, 0.002, 0.0004])
    assert state.history[-1]["loss"] < state.history[0]["loss"]


def test_history_csv_holds_every_epoch(network, small, tmp_path):
    state = fit(network, Undefended(), small, epochs=2, out=tmp_path, progress=False)
    rows = list(csv.DictReader((tmp_path / "history.csv").open()))
    assert [float(row["val_accuracy"]) for row in rows] == [row["val_accuracy"] for row in state.history]


def test_tensorboard_gets_every_figure_of_every_epoch(network, small, tmp_path, monkeypatch):
    written = {}

    class Writer:
        def __init__(self, folder):
            assert folder == str(tmp_path / "tensorboard")

        def add_scalar(self, name, value, epoch):
            written[name, epoch] = value

        def flush(self):
            written["flushed"] = True

        def close(self):
            written["closed"] = True

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = Writer
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    state = fit(network, Undefended(), small, epochs=2, out=tmp_path, tensorboard=True, progress=False)
    assert written["val_accuracy", 2] == state.history[1]["val_accuracy"] and written["closed"]


def test_tensorboard_is_optional_and_says_how_to_get_it(network, small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ValueError, match=r"attcem\[tensorboard\]"):
        fit(network, Undefended(), small, epochs=1, out=tmp_path, tensorboard=True, progress=False)


def test_fine_tuning_starts_from_another_runs_weights(network, small, tmp_path):
    fit(network, Undefended(), small, epochs=3, out=tmp_path / "first", progress=False)
    other = build_split(network.spec)
    assert (weights(other) - weights(network)).abs().max() > 0.1
    fit(other, Noise(0.01), small, epochs=1, lr=1e-5, start_from=str(tmp_path / "first"), progress=False)
    assert 0 < (weights(other) - weights(network)).abs().max() < 1e-3
