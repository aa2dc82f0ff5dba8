"""Many clients, one cloud half: what is averaged, what is counted, and that nothing is lost by a stop."""

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attcem.config import ClientsConfig
from attcem.defences import DEFENCES, Noise, Pruning, create_defence, option_types, own_parameters
from attcem.train import evaluate, fit, fit_clients, honesty, read_state, read_tensors
from attcem.train.averaging import copy_into, exchanged, kept, weighted_mean
from tests.probes import Poison, Scaled
from tests.train.federated import SYNCS, UNLIKE, all_epochs, few_of, network, run, same
from tests.train.pair import SOME


@pytest.fixture(scope="module")
def few(fashion):
    return few_of(fashion)


@pytest.fixture(autouse=True)
def looked_at(monkeypatch):
    """The latents on which a surrogate would be tested for honesty: that takes long, and is tested elsewhere."""
    found = []
    monkeypatch.setattr(honesty, "surrogate_only", lambda surrogate, latents: found.extend(latents) or 0.0)
    return found


@settings(max_examples=50)
@given(
    images=st.lists(st.integers(0, 5000), min_size=1, max_size=5).filter(any),
    shape=st.lists(st.integers(1, 4), max_size=3),
    seed=st.integers(0, 99),
)
def test_the_mean_weighs_every_client_by_its_images(images, shape, seed):
    torch.manual_seed(seed)
    states = [{"w": torch.randn(shape, dtype=torch.float64), "n": torch.tensor(7 * i)} for i in range(len(images))]
    found = weighted_mean(states, images)
    slow = torch.zeros(shape, dtype=torch.float64)
    for state, count in zip(states, images, strict=True):
        slow = slow + state["w"] * (count / sum(images))
    assert torch.allclose(found["w"], slow, atol=1e-12)
    counter = sum(7 * i * count for i, count in enumerate(images)) / sum(images)
    assert found["n"].dtype == torch.int64 and abs(found["n"].item() - counter) <= 0.5


def test_the_mean_of_equals_is_exactly_that():
    state = {"w": torch.randn(1000), "n": torch.tensor(3)}
    assert same(weighted_mean([state] * 3, [37, 101, 5]), state)
    with pytest.raises(ValueError, match="nobody has learned"):
        weighted_mean([state], [0])


def test_a_guard_gives_away_what_is_trained_and_keeps_everything_else(few):
    guard = Noise(0.1) + create_defence("bound", assign="slot", memory=0.9, tokens="spatial")
    guard = guard + create_defence("arl", channels=4, blocks=1) + Scaled()
    model = network(few)
    guard.setup(latent=model.latent_shape, classes=10, sigma=0.1)
    given, own = exchanged(model.encoder, guard), kept(guard)
    learned = {name.removeprefix("guard.") for name in given if name.startswith("guard.")}
    assert learned | own.keys() == guard.state_dict().keys() and not learned & own.keys()
    assert learned == {name for name, p in guard.named_parameters() if p.requires_grad}
    assert any(".adversary.painter." in name for name in own) and any(".remembered." in name for name in own)
    assert {name.removeprefix("encoder.") for name in given if name.startswith("encoder.")} == {
        *model.encoder.state_dict()
    }
    copy_into(given, {name: torch.ones_like(tensor) for name, tensor in given.items()})
    assert all((p == 1).all() for p in (*model.encoder.parameters(), *own_parameters(guard)))


@pytest.mark.parametrize("sync", SYNCS)
def test_one_client_is_plain_training(few, sync):
    found = []
    for train in (fit, lambda *given, **how: fit_clients(*given[:3], ClientsConfig(count=1, sync=sync), **how)):
        model, guard = network(few), Noise(0.1) + Scaled(lam=0.1)
        train(model, guard, few, epochs=2, batch=32, recipe="original", progress=False)
        found.append(model.state_dict() | guard.state_dict())
    assert same(*found)


@pytest.mark.parametrize("sync", SYNCS)
def test_unlike_clients_learn_together(small, sync):
    model = network(small, width=0.125)
    state, guards = fit_clients(
        model, Noise(0.05), small, dataclasses.replace(UNLIKE, sync=sync), epochs=5, batch=32, lr=0.05, progress=False
    )
    assert state.best_accuracy > 0.45 and len(guards) == 3
    assert evaluate(model, guards[0], small.validation)[1] == pytest.approx(state.best_accuracy, abs=0.06)


def test_an_epoch_ends_in_the_mean_of_what_the_clients_learned(few, monkeypatch):
    training = run(few, Noise(0.1) + Scaled(lam=0.1), batch=16)
    before, synchronise = [], training.synchronise

    def watched():
        before.append([(c.since, {name: t.clone() for name, t in c.exchanged().items()}) for c in training.learners])
        synchronise()

    monkeypatch.setattr(training, "synchronise", watched)
    all_epochs(training)
    ((*states,),) = before
    seen = [since for since, _ in states]
    assert seen == [16 * (len(c.images) // 16) for c in training.learners] and len(set(seen)) > 1
    assert not same(states[0][1], states[1][1])
    deployed = exchanged(training.model.encoder, training.guard)
    for name, tensor in deployed.items():
        slow = sum(since / sum(seen) * state[name].double() for since, state in states)
        assert torch.allclose(tensor.double(), slow, atol=0.5 if tensor.dtype == torch.int64 else 1e-6), name
    assert all(same(deployed, client.exchanged()) for client in training.learners)
    assert all(client.since == 0 for client in training.learners)


@pytest.mark.parametrize("sync", SYNCS)
def test_encoders_part_within_an_epoch_a_round_or_never(few, sync):
    training = run(few, Noise(0.1) + Scaled(lam=0.1), ClientsConfig(count=3, sync=sync))
    training.start(resume=False)
    different = []
    for _ in training.steps(0):
        states = [client.exchanged() for client in training.learners]
        different.append(1 + (not same(states[0], states[1])) + all(not same(states[2], each) for each in states[:2]))
    assert different == {"epoch": [2, 3, 3, 3, 3, 3], "batch": [2, 3, 3, 2, 3, 3], "shared": [1] * 6}[sync]
    states = [exchanged(training.model.encoder, training.guard), *(c.exchanged() for c in training.learners)]
    assert all(same(states[0], each) for each in states)
    assert len({id(client.model.encoder) for client in training.learners}) == (1 if sync == "shared" else 3)
    assert len({id(client.model.decoder) for client in training.learners}) == 1


@pytest.mark.parametrize("sync", SYNCS)
def test_the_deployed_guard_has_what_all_learned_and_nothing_that_anyone_kept(few, sync):
    guard = Noise(0.2) + create_defence("bound", assign="slot", memory=0.9, tokens="spatial", lam=0.1)
    model = network(few)
    _, guards = fit_clients(
        model, guard, few, dataclasses.replace(UNLIKE, sync=sync), epochs=1, batch=32, progress=False
    )
    learned = exchanged(nn.Identity(), guard)
    assert learned and all(same(learned, exchanged(nn.Identity(), own)) for own in guards)
    mass = [own.links[-1].remembered.mass for own in (guard, *guards)]
    assert not mass[0].any() and all(each.any() for each in mass[1:])
    assert not torch.equal(mass[1], mass[2])


@pytest.mark.parametrize("sync", SYNCS)
def test_pruning_silences_the_same_channels_everywhere(few, sync):
    clients = dataclasses.replace(UNLIKE, sync=sync, sampled=0.5)
    training = all_epochs(run(few, Noise(0.1) + Pruning(keep=0.5), clients, epochs=3))
    pruning, *others = (guard.links[-1] for guard in (training.guard, *(c.guard for c in training.learners)))
    assert pruning.silenced > 0
    for number, (_, complete) in enumerate(pruning.layers):
        mask, seen = getattr(pruning, f"mask_{number}"), []
        complete.register_forward_hook(lambda _layer, _inputs, output, seen=seen: seen.append(output))
        training.model.eval().encoder(few.validation[:4].pixels())
        assert 0 < (mask == 0).sum() < len(mask)
        assert not seen[0][:, mask == 0].any() and seen[0][:, mask == 1].any()
        assert sync == "shared" or all(torch.equal(getattr(other, f"mask_{number}"), mask) for other in others)


def test_batches_that_are_not_finite_are_skipped_and_counted_for_each_client(few):
    clients = ClientsConfig(count=3)
    training = run(few, Poison(), clients)
    training.learners[1].guard.links[0].release_at = {1, 2}
    training.learners[2].guard.links[0].release_at = {2}
    all_epochs(training)
    (row,) = training.state.history
    assert [row[f"client_{number}/skipped"] for number in range(3)] == [0, 2, 1] and row["skipped"] == 3
    assert [row[f"client_{number}/seen"] for number in range(3)] == [64, 0, 32]
    assert "client_0/accuracy" in row and "client_1/accuracy" not in row
    assert [client.guard.links[0].observed for client in training.learners] == [2, 0, 1]
    assert all(t.isfinite().all() for t in training.model.state_dict().values())


def test_the_share_that_takes_part_is_drawn_anew_in_each_epoch_and_is_at_least_one(few):
    training = run(few, Poison(), ClientsConfig(count=3, sampled=0.1), epochs=6)
    drawn = [training.drawn(epoch) for epoch in range(6)]
    assert {len(each) for each in drawn} == {1} and len({each[0] for each in drawn}) > 1
    assert drawn == [training.drawn(epoch) for epoch in range(6)]
    all_epochs(training)
    for number, client in enumerate(training.learners):
        assert client.guard.links[0].observed == sum(len(client.loader) for each in drawn if number in each)
        taking_part = [f"client_{number}/seen" in row for row in training.state.history]
        assert taking_part == [number in each for each in drawn]
    assert len(run(few, Noise(), ClientsConfig(count=3, sampled=0.67)).drawn(0)) == 2


@pytest.mark.parametrize("sync", SYNCS)
def test_an_interrupted_run_ends_in_the_same_weights_memories_and_momentum(few, sync, tmp_path):
    clients = dataclasses.replace(UNLIKE, sync=sync, sampled=0.7)

    def train(out, at=None, resume=False):
        link, steps = Scaled(lam=0.1), 0

        def observe(batch):
            nonlocal steps
            steps += 1
            if steps == at:
                raise KeyboardInterrupt

        link.observe = observe
        guard = Noise(0.2) + create_defence("bound", memory=0.9, lam=0.1) + link
        fit_clients(network(few), guard, few, clients, epochs=3, batch=32, out=out, resume=resume, progress=False)

    train(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "parts", at=9)
    stopped = read_state(tmp_path / "parts" / "checkpoint")
    assert 0 < stopped.epoch < 3
    momentum = [name for name in read_tensors(tmp_path / "parts" / "checkpoint", stopped, "last") if "momentum" in name]
    owners = {name.split(".optimiser.")[0].partition(".")[0] for name in momentum}
    assert owners == {"cloud", "device" if sync == "shared" else "client"}
    train(tmp_path / "parts", resume=True)
    whole, parts = (
        read_tensors(tmp_path / name / "checkpoint", read_state(tmp_path / name / "checkpoint"), "best")
        for name in ("whole", "parts")
    )
    assert same(whole, parts) and any(name.startswith("client.2.guard.") for name in whole)


def test_other_clients_cannot_go_on_with_a_run(few, tmp_path):
    def train(clients, **options):
        fit_clients(network(few), Noise(0.1), few, clients, epochs=1, batch=32, out=tmp_path, progress=False, **options)

    train(UNLIKE)
    with pytest.raises(ValueError, match="another config: clients was"):
        train(dataclasses.replace(UNLIKE, alpha=5.0), resume=True)
    with pytest.raises(ValueError, match="another config: clients was"):
        fit(network(few), Noise(0.1), few, epochs=1, batch=32, out=tmp_path, resume=True, progress=False)


@pytest.mark.parametrize(
    "name", [name if name in SOME else pytest.param(name, marks=pytest.mark.slow) for name in DEFENCES]
)
def test_any_defence_is_trained_by_clients_who_all_release_as_the_deployed_guard_does(few, name, tmp_path):
    options = {"warmup": 1} if "warmup" in option_types(name) else {}
    if "start_from" in option_types(name):
        fit(network(few), Noise(0.1), few, epochs=1, batch=64, out=tmp_path, progress=False)
        options["start_from"] = str(tmp_path)
    model, guard = network(few), Noise(0.1) + create_defence(name, **options)
    state, guards = fit_clients(model, guard, few, UNLIKE, epochs=2, batch=64, progress=False)
    assert state.finished and len(guards) == 3
    with torch.no_grad():
        z = model.encoder(few.validation[:4].pixels())
        released = [(torch.manual_seed(0), each.release(z))[1] for each in (guard, *guards)]
    assert released[0].isfinite().all() and all(torch.equal(released[0], each) for each in released)
