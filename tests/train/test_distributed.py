"""Two processes give what one gives at the same global batch, for every defence: curves, readings and weights."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from attcem.defences import DEFENCES
from attcem.models import CROSSINGS
from attcem.train.collectives import memory_order, padded
from attcem.types import Batch
from tests.forked import forking
from tests.train import pair


@pytest.fixture(scope="module")
def asked(once, fashion):
    """What the first of two processes found in every scenario, and the folder in which both did it."""

    def begin(folder):
        pair.begun(folder / "begun by one")
        pair.whole()
        with forking():
            pair.two(folder)

    folder = once("pair", begin)
    first, second = pair.found_by_two(folder)
    assert [name for name in first if pair.apart(first[name], second[name], most=0)] == [], "they have drifted apart"
    return first, folder


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def test_two_processes_train_as_one_under_some_defences(asked, tmp_path):
    """Batches of 27: the two never have equal shares."""
    found, folder = asked
    alone = pair.some_defences(tmp_path)
    assert pair.apart(alone, found["some_defences"]) == []
    assert files(tmp_path) == files(folder / "some_defences by two")


@pytest.mark.slow
def test_and_under_all_others(forked, tmp_path):
    alone = pair.other_defences(tmp_path / "alone")
    assert {name.partition(":")[0] for name in alone} == DEFENCES.keys() - set(pair.SOME)
    first, second = pair.two(tmp_path, ["other_defences"])
    assert pair.apart(first["other_defences"], second["other_defences"], most=0) == [], "they have drifted apart"
    assert pair.apart(alone, first["other_defences"]) == []


def test_two_processes_train_as_one_whatever_crosses(asked, tmp_path):
    alone = pair.every_crossing(tmp_path)
    assert {name.partition(":")[0] for name in alone} == set(CROSSINGS)
    assert pair.apart(alone, asked[0]["every_crossing"]) == []


def test_gradients_are_those_of_the_whole_batch_computed_the_obvious_way(asked):
    """Batch norm, dropout, noise, a class-wise penalty and one through the encoder; a batch of 7."""
    found = asked[0]["gradients"]
    model, guard, x, y = pair.stepping()
    x.requires_grad_()
    z = model.encoder(x)
    loss = F.cross_entropy(model.decoder(guard.release(z)), y)
    bound, fisher = (link.penalty(Batch(x, y, z)) for link in guard.links[1:])
    expected = {"loss": loss.detach(), "bound": bound.detach()}
    (loss + 0.7 * bound + 0.7 * fisher).backward()
    expected |= {name: p.grad for name, p in model.named_parameters()} | dict(model.named_buffers())
    assert pair.apart(found, expected, most=1e-10) == []
    assert all(p.grad.abs().max() > 1e-6 for name, p in model.named_parameters() if name.endswith("weight"))


def test_a_picture_that_is_not_finite_in_one_process_makes_both_skip_its_batch(asked, tmp_path):
    alone = pair.one_white_picture(tmp_path)
    assert pair.apart(alone, asked[0]["one_white_picture"]) == []
    rows = [value for name, value in alone.items() if name.startswith("epoch")]
    assert len(rows) == 2 and all(1.0 in row for row in rows), "nothing was skipped"


def test_a_blank_latent_leaves_chance(asked):
    _, accuracy = asked[0]["blank"]["best"].tolist()
    shares = pair.few().validation.y.bincount() / 33
    assert shares.max() < 0.25
    assert min(abs(accuracy - share) for share in shares.tolist()) < 1e-6, "not all pictures were taken for one class"


def test_a_run_goes_on_with_another_number_of_processes(asked, tmp_path):
    found, folder = asked
    whole = pair.kept(tmp_path / "whole")
    assert pair.apart(whole, found["resumed"]) == [], "begun by one, ended by two"
    assert pair.apart(whole, pair.kept(folder / "begun by two", resume=True)) == [], "begun by two, ended by one"


@pytest.mark.parametrize(
    ("asked_for", "answer"),
    [
        ("seed", "process 1 has another seed"),
        ("epochs", "process 1 has another epochs"),
        ("defence", "process 1 has another defence"),
        ("data", "process 1 has another data"),
        ("batch", "raise train.batch"),
        ("device", "use cuda"),
        ("clients", "clients.count"),
    ],
)
def test_what_two_processes_cannot_do_is_said(asked, asked_for, answer):
    assert answer in bytes(asked[0]["refused"][asked_for].tolist()).decode()


def test_padding_keeps_the_order_in_memory():
    """Or noise would fall on other numbers."""
    x = torch.rand(3, 4, 5, 6).to(memory_format=torch.channels_last)
    whole = padded(x, 2, 1)
    assert memory_order(whole) == memory_order(x) == [0, 2, 3, 1]
    assert torch.equal(whole[2:5], x) and not whole[:2].any() and not whole[5:].any()
