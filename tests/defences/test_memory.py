"""Moments over many batches: the bound of all samples seen, older ones counting less, and its gradient."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Bound
from tests.defences.draws import EXACT, SIGMA, batch_of, own, ready
from tests.defences.slow import slow_entropy, slow_positions, slow_rate, slow_responsibilities

FORMS = [
    {"cov": "diag"},
    {"cov": "channel"},
    {"assign": "gated", "tokens": "pooled"},
    {"assign": "gated", "tokens": "spatial"},
    {"assign": "gated", "cov": "channel", "tokens": "spatial"},
    {"assign": "slot", "tokens": "spatial"},
]


def latents(n, latent=(3, 1, 2), seed=0):
    return torch.randn(n, *latent, generator=torch.Generator().manual_seed(seed), dtype=torch.double)


def made(keep, latent=(3, 1, 2), classes=3, **options):
    return ready(Bound(memory=keep, slots=2, iters=1, **options), latent, classes)


def stepped(defence, batch):
    penalty = defence.penalty(batch)
    defence.observe(batch_of(batch.z.detach(), batch.y))
    return penalty.item()


@torch.no_grad()
def slow_remembered(defence, seen, keep):
    """The last batch's bound, each class's moments over all batches, one that is s steps old counting keep^s."""
    last = seen[-1]
    value, share = 0.0, {c: (last.y == c).sum().item() / len(last.y) for c in set(last.y.tolist())}
    for c in share:
        rows, resp, ages = [], [], []
        for age, batch in enumerate(reversed(seen)):
            members = batch.z[batch.y == c]
            by_position = defence.cov == "channel" or defence.tokens == "spatial"
            decided = slow_responsibilities(defence, members) if len(members) else []
            for one, row in zip(members, decided, strict=True):
                places = slow_positions(one) if by_position else [one.flatten()]
                rows += places
                resp += row if len(row) == len(places) else row * len(places)
                ages += [age] * len(places)
            if age == 0:
                positions, decisions = len(places), len(row)
                unsure = sum(slow_entropy(token) for row in decided for token in row) / (len(decided) * decisions)
        weights = [[keep**age * r[k] for age, r in zip(ages, resp, strict=True)] for k in range(len(resp[0]))]
        pi = [sum(own) / sum(sum(other) for other in weights) for own in weights]
        rate = sum(p * slow_rate(defence.cov, rows, own, SIGMA) for p, own in zip(pi, weights, strict=True))
        value += share[c] * (decisions * (slow_entropy(pi) - unsure) + positions * rate)
    return (value + slow_entropy(share.values())) / last.z[0].numel()


@pytest.mark.parametrize("form", FORMS, ids=str)
@settings(max_examples=6)
@given(
    keep=st.sampled_from([0.3, 0.9]), sizes=st.lists(st.integers(1, 7), min_size=1, max_size=5), seed=st.integers(0, 99)
)
def test_equal_to_the_slow_loop_over_all_batches(form, keep, sizes, seed):
    defence, seen = made(keep, **form), []
    for step, n in enumerate(sizes):
        y = torch.randint(0, 3, (n,), generator=torch.Generator().manual_seed(seed + step))
        seen.append(batch_of((1 + step) * latents(n, seed=seed + step), y))
        assert stepped(defence, seen[-1]) == pytest.approx(slow_remembered(defence, seen, keep), **EXACT)


def epochs(count, y, each, seed=0):
    """Rows of one batch after the other, all samples once in every epoch."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        yield from torch.randperm(len(y), generator=generator).split(each)


@pytest.mark.parametrize("form", [{}, {"assign": "gated"}, {"cov": "channel", "tokens": "spatial"}], ids=str)
@pytest.mark.parametrize("each", [1, 2])
@torch.no_grad()
def test_the_value_over_many_batches_is_that_of_all_samples(form, each):
    """Samples of a class are the columns, so that every batch holds `each` of every class."""
    z, y = (
        latents(120) * torch.tensor([0.2, 1.0, 5.0]).double().repeat(40).reshape(-1, 1, 1, 1) + 1,
        torch.arange(120) % 3,
    )
    truth = made(0.0, **form).penalty(batch_of(z, y)).item()
    defence, values = made(0.98, **form), []
    for columns in epochs(3, torch.arange(40), each):
        rows = (3 * columns.unsqueeze(1) + torch.arange(3)).flatten()
        values.append(stepped(defence, batch_of(z[rows], y[rows])))
    last = values[-(40 // each) :]
    assert sum(last) / len(last) == pytest.approx(truth, rel=0.02)
    alone = made(0.0, **form).penalty(batch_of(z[rows], y[rows])).item()
    assert alone < 0.8 * truth if each > 1 else alone == 0


@pytest.mark.parametrize("form", [{}, {"assign": "gated"}], ids=str)
def test_the_mean_gradient_of_many_batches_is_that_of_all_samples(form):
    """Also for classes that most batches do not hold: one class has half of all samples here, five share the rest."""
    classes = 6
    y = torch.cat([torch.zeros(90, dtype=torch.int64), 1 + torch.arange(90) % 5])
    z = latents(180, (4,)) * (1 + y.double().unsqueeze(1))
    whole, defence = made(0.0, (4,), classes, **form), made(0.995, (4,), classes, **form)

    def pull(bound, batch):
        """How the bound changes as each class grows, and as its own parameters do."""
        leaf = batch.z.clone().requires_grad_()
        at_z, *at_own = torch.autograd.grad(bound.penalty(batch_of(leaf, batch.y)), [leaf, *own(bound)])
        grown = (at_z * batch.z).sum(1)
        return torch.cat([torch.zeros(classes).double().index_add(0, batch.y, grown), *(g.flatten() for g in at_own)])

    truth, pulls = pull(whole, batch_of(z, y)), []
    for rows in epochs(7, y, 6):
        batch = batch_of(z[rows], y[rows])
        pulls.append(pull(defence, batch))
        defence.observe(batch)
    mean = sum(pulls[90:]) / len(pulls[90:])
    torch.testing.assert_close(mean[:classes], truth[:classes], rtol=0.05, atol=0)
    if form:
        mean, truth = mean[classes:], truth[classes:]
        assert torch.cosine_similarity(mean, truth, 0) > 0.98
        assert (mean @ truth / (truth @ truth)).item() == pytest.approx(1, abs=0.1)


def test_the_first_batch_is_as_if_there_were_no_memory():
    z, y = latents(9), torch.arange(9) % 3
    found = []
    for keep in (0.0, 0.9):
        leaf = z.clone().requires_grad_()
        penalty = made(keep, assign="gated").penalty(batch_of(leaf, y))
        penalty.backward()
        found.append((penalty.item(), leaf.grad))
    assert found[0][0] == pytest.approx(found[1][0], **EXACT)
    torch.testing.assert_close(found[0][1], found[1][1])


def test_nothing_is_remembered_but_by_observing():
    defence, batch = made(0.9), batch_of(latents(9), torch.arange(9) % 3)
    values = [defence.penalty(batch_of(scale * batch.z, batch.y)).item() for scale in (1.0, 5.0, 1.0)]
    assert values[0] == values[2] and not any(buffer.any() for buffer in defence.buffers())
    defence.observe(batch)
    assert defence.remembered.mass.all()
    before = [buffer.clone() for buffer in defence.buffers()]
    defence.observe(batch)  # nothing new was seen
    assert all(torch.equal(*pair) for pair in zip(defence.buffers(), before, strict=True))


def test_classes_absent_from_a_batch_keep_their_moments_and_weigh_less():
    defence = made(0.9, classes=4)
    stepped(defence, batch_of(latents(9), torch.arange(9) % 3))
    before = {name: value.clone() for name, value in defence.remembered.named_buffers()}
    stepped(defence, batch_of(latents(4, seed=1), torch.tensor([0, 0, 3, 3])))
    after = dict(defence.remembered.named_buffers())
    for name in ("mu", "var"):
        assert torch.equal(after[name][1:3], before[name][1:3])
        assert not torch.isclose(after[name][[0, 3]], before[name][[0, 3]]).any()
    torch.testing.assert_close(after["mass"][1:3], 0.9 * before["mass"][1:3])


DIAG, CHANNEL, SLOT = {}, {"cov": "channel"}, {"assign": "slot", "tokens": "spatial"}


@pytest.mark.parametrize(
    ("form", "value"),
    [(form, value) for form in (DIAG, CHANNEL, SLOT) for value in (math.nan, math.inf, 1e25)] + [(CHANNEL, 1e10)],
    ids=str,
)
def test_a_batch_that_is_not_finite_or_too_large_to_be_penalised_is_not_remembered(form, value):
    defence, y = made(0.9, **form).float(), torch.arange(9) % 3
    z = latents(9).float()
    stepped(defence, batch_of(z, y))
    before = [buffer.clone() for buffer in defence.buffers()]
    bad = z.clone()
    bad[0] = bad[0] * value
    broken = batch_of(bad, y)
    assert stepped(defence, broken) == 0 and "lost" in broken.readings
    assert all(torch.equal(*pair) for pair in zip(defence.buffers(), before, strict=True))
    assert stepped(defence, batch_of(z, y)) > 0


def test_a_batch_in_double_that_single_cannot_keep_is_not_remembered():
    defence = Bound(memory=0.9)
    defence.setup(latent=(4,), classes=1, sigma=SIGMA)
    assert stepped(defence, batch_of(1e30 * latents(5, (4,)), torch.zeros(5, dtype=torch.int64))) > 0
    assert not defence.remembered.var.any()


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_survives_saving(form):
    defence = made(0.9, **form)
    for seed in range(3):
        stepped(defence, batch_of(latents(9, seed=seed), torch.arange(9) % 3))
    again = made(0.9, **form)
    again.load_state_dict(defence.state_dict())
    batch = batch_of(latents(5, seed=7), torch.tensor([0, 1, 2, 2, 2]))
    assert stepped(again, batch) == stepped(defence, batch) == pytest.approx(again.penalty(batch).item(), rel=0.5)


def test_shares_that_are_none_and_determinants_of_one_batch_are_refused():
    for memory in (-0.1, 1.0):
        with pytest.raises(ValueError, match="is no share"):
            Bound(memory=memory)
    with pytest.raises(ValueError, match="use memory=0"):
        Bound(memory=0.9, cov="gram")
