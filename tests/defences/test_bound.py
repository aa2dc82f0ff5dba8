"""The bound against a slow loop over classes, samples and dimensions."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Bound, Noise, create_defence
from attcem.types import Batch

COVS = ["diag", "channel", "gram"]
SIGMA = 0.3


@st.composite
def batches(draw):
    n, classes = draw(st.integers(1, 12)), draw(st.sampled_from([1, 3, 8, 600]))
    latent = draw(st.sampled_from([(1,), (4,), (3, 1, 1), (2, 2, 3)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    z = torch.randn(n, *latent, generator=generator, dtype=torch.double) * draw(st.sampled_from([1e-3, 1.0, 30.0]))
    if draw(st.booleans()):
        z[:] = z[:1]
    if draw(st.booleans()):
        z[:, 0] = 0.5
    return batch_of(z, torch.randint(0, classes, (n,), generator=generator)), classes


def batch_of(z, y):
    return Batch(torch.zeros(len(z), 1, 2, 2, dtype=z.dtype), y, z)


def made(cov, classes, latent=(4,), sigma=SIGMA):
    defence = Bound(cov=cov)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    return defence


def slow_bound(z, y, cov, sigma):
    """H(π) + Σ_c π_c · rate_c, each class taken by itself."""
    members = {c: z[y == c] for c in set(y.tolist()) if (y == c).sum() >= 2}
    total = sum(len(own) for own in members.values())
    value = 0.0
    for own in members.values():
        pi, tokens = len(own) / total, 1
        rows = own.flatten(1)
        if cov == "channel" and own.ndim == 4:
            tokens = own.shape[2] * own.shape[3]
            rows = torch.stack([one[:, i, j] for one in own for i in range(own.shape[2]) for j in range(own.shape[3])])
        rows = rows - sum(rows) / len(rows)
        full = sum(torch.outer(row, row) for row in rows) / len(rows)
        if cov == "diag":
            rate = sum(0.5 * math.log(1 + v / sigma**2) for v in full.diagonal().tolist())
        else:
            rate = tokens * 0.5 * torch.logdet(torch.eye(len(full)) + full / sigma**2).item()
        value += -pi * math.log(pi) + pi * rate
    return value / z[0].numel()


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=40, deadline=None)
@given(drawn=batches())
def test_equal_to_the_slow_loop(cov, drawn):
    batch, classes = drawn
    found = made(cov, classes).penalty(batch).item()
    assert found == pytest.approx(slow_bound(batch.z, batch.y, cov, SIGMA), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=15, deadline=None)
@given(drawn=batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(cov, drawn, seed):
    batch, classes = drawn
    generator = torch.Generator().manual_seed(seed)
    order, rename = torch.randperm(len(batch.y), generator=generator), torch.randperm(classes, generator=generator)
    defence = made(cov, classes)
    again = defence.penalty(batch_of(batch.z[order], rename[batch.y[order]]))
    torch.testing.assert_close(again, defence.penalty(batch), atol=1e-9, rtol=1e-9)


def example(n=12, latent=(2, 3, 3), classes=3, dtype=torch.double):
    z = torch.randn(n, *latent, generator=torch.Generator().manual_seed(1), dtype=dtype)
    return batch_of(z.requires_grad_(), torch.arange(n) % classes)


def test_the_whole_covariance_is_never_looser_than_its_parts():
    batch = example()
    diag, channel, gram = (made(cov, 3).nats(batch).item() for cov in COVS)
    assert gram < diag and gram < channel


@pytest.mark.parametrize("cov", COVS)
def test_grows_with_scale_against_the_noise_and_only_with_that(cov):
    batch = example()
    double = batch_of(2 * batch.z, batch.y)
    assert made(cov, 3).nats(double) > made(cov, 3).nats(batch)
    torch.testing.assert_close(made(cov, 3, sigma=2 * SIGMA).nats(double), made(cov, 3).nats(batch))


@pytest.mark.parametrize("cov", COVS)
def test_gradient_is_right_and_absent_for_a_sample_alone_in_its_class(cov):
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1), dtype=torch.double, requires_grad=True)
    y = torch.tensor([0, 0, 2, 2, 4])
    assert torch.autograd.gradcheck(lambda z: made(cov, 6).penalty(batch_of(z, y)), z)
    made(cov, 6).penalty(batch_of(z, y)).backward()
    assert z.grad[:4].abs().sum(1).min() > 0 and not z.grad[4].any()


@pytest.mark.parametrize("cov", COVS)
def test_no_class_with_two_samples_gives_a_zero_that_keeps_the_graph(cov):
    batch = example(n=4, classes=4)
    defence = made(cov, 4)
    penalty = defence.penalty(batch)
    penalty.backward()
    assert penalty.item() == 0 and not batch.z.grad.any() and defence.lost == 0


@pytest.mark.parametrize("cov", COVS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_penalty_that_is_not_finite_becomes_a_zero_that_keeps_the_graph_and_is_counted(cov, value):
    batch = example(dtype=torch.float32)
    z = batch.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    defence = made(cov, 3)
    penalty = defence.penalty(batch_of(z, batch.y))
    penalty.backward()
    assert penalty.isfinite() and z.grad.isfinite().all()
    assert (penalty.item(), z.grad.any().item(), defence.lost) == (0, False, 1)
    assert defence.penalty(batch) > 0 and defence.lost == 1


@pytest.mark.parametrize("cov", COVS)
def test_a_sample_that_is_left_out_may_be_anything(cov):
    z = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    z[4] = torch.nan
    z.requires_grad_()
    defence = made(cov, 6)
    penalty = defence.penalty(batch_of(z, torch.tensor([0, 0, 2, 2, 4])))
    penalty.backward()
    assert penalty > 0 and z.grad.isfinite().all() and defence.lost == 0


@pytest.mark.parametrize("cov", COVS)
def test_latents_of_any_size_have_finite_penalties_and_gradients(cov):
    batch = example(dtype=torch.float32)
    defence = made(cov, 3)
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 38, 2))]:
        z = (scale * batch.z.detach()).requires_grad_()
        penalty = defence.penalty(batch_of(z, batch.y))
        penalty.backward()
        assert penalty.isfinite() and penalty >= 0 and z.grad.isfinite().all(), scale
    assert defence.lost > 0


@pytest.mark.parametrize("cov", COVS)
def test_following_the_gradient_makes_a_class_narrow(cov):
    batch = example()
    defence, z = made(cov, 3), batch.z.detach().clone().requires_grad_()
    optimiser = torch.optim.SGD([z], lr=2.0)
    for _ in range(200):
        optimiser.zero_grad()
        defence.penalty(batch_of(z, batch.y)).backward()
        optimiser.step()
    assert z.detach()[batch.y == 0].var(0).mean() < 0.5 * batch.z.detach()[batch.y == 0].var(0).mean()


def test_half_precision_latents_are_bounded_in_single():
    batch = example(dtype=torch.float32)
    found = made("gram", 3).penalty(batch_of(batch.z.bfloat16(), batch.y))
    assert found.dtype == torch.float32 and found.item() == pytest.approx(
        made("gram", 3).penalty(batch).item(), rel=0.02
    )


def test_needs_noise_and_says_so():
    with pytest.raises(ValueError, match="add Noise"):
        made("diag", 3, sigma=0.0)
    chain = Noise(0.3) + Bound()
    chain.setup(latent=(4,), classes=3, sigma=chain.sigma)
    assert chain.sigma == 0.3


def test_wrong_choices_name_the_right_one():
    with pytest.raises(ValueError, match="did you mean 'channel'"):
        create_defence("bound", cov="channels")
    with pytest.raises(ValueError, match='use cov="gram"'):
        made("channel", 3, latent=(512, 7, 7))
