"""The bound against slow loops over classes, samples, tokens and slots, and against the information itself."""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from attcem.defences import Bound, Noise, create_defence
from tests.defences.draws import (
    EXACT,
    SIGMA,
    TOKENS,
    batch_of,
    batches,
    example,
    gradients_are_right,
    loses_only,
    own,
    ready,
    shuffled,
    survives_any_size,
)
from tests.defences.slow import classes_of, slow_bound
from tests.maths.test_rate import integrated_information

COVS = ["diag", "channel", "gram"]
FORMS = [(cov, tokens) for cov in COVS for tokens in TOKENS if cov != "gram" or tokens in ("flat", "pooled")]


def made(cov, classes, latent=(4,), sigma=SIGMA):
    defence = Bound(cov=cov)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    return defence


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(drawn=batches())
def test_equal_to_the_slow_loop(cov, drawn):
    batch, classes = drawn
    defence = made(cov, classes, batch.z.shape[1:])
    assert defence.penalty(batch).item() == pytest.approx(slow_bound(defence, batch), **EXACT)


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
@settings(max_examples=12, deadline=None, derandomize=True)
@given(drawn=batches())
def test_equal_to_the_slow_loop_whoever_decides(assign, cov, tokens, drawn):
    batch, classes = drawn
    defence = Bound(assign=assign, cov=cov, tokens=tokens, width=5, slots=3, iters=2)
    defence = ready(defence, batch.z.shape[1:], classes)
    assert defence.penalty(batch).item() == pytest.approx(slow_bound(defence, batch), **EXACT)


@pytest.mark.parametrize("cov", COVS)
@settings(max_examples=15, deadline=None, derandomize=True)
@given(drawn=batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(cov, drawn, seed):
    batch, classes = drawn
    defence = made(cov, classes)
    again = defence.penalty(shuffled(batch, classes, seed)[0])
    torch.testing.assert_close(again, defence.penalty(batch), atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("assign", ["gated", "slot"])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(drawn=batches(), form=st.sampled_from(FORMS), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter_to_attention(assign, drawn, form, seed):
    (batch, classes), (cov, tokens) = drawn, form
    defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, width=5, slots=3), batch.z.shape[1:], classes)
    again = defence.penalty(shuffled(batch, classes, seed)[0]).item()
    assert again == pytest.approx(defence.penalty(batch).item(), **EXACT)


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


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_depends_only_on_the_scale_against_the_noise_either(assign, cov, tokens):
    batch = example(latent=(3, 2, 2))

    def nats(scale, sigma):
        defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, slots=3), (3, 2, 2), sigma=sigma)
        return defence.nats(batch_of(scale * batch.z.detach(), batch.y)).item()

    first = nats(1e6, 1e6 * SIGMA)  # so large that what keeps a norm from dividing by zero plays no part
    assert nats(2e6, 2e6 * SIGMA) == pytest.approx(first, rel=1e-6)
    assert nats(2e6, 1e6 * SIGMA) > first + 1


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_gradient_is_right_at_latents_and_parameters(assign, cov, tokens):
    defence = ready(Bound(assign=assign, cov=cov, tokens=tokens, width=4, slots=2, iters=2), (3, 1, 2))
    assert gradients_are_right(defence, example(n=7, latent=(3, 1, 2)))


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
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_over_latents_of_any_size_has_finite_penalties_and_gradients(assign, cov):
    assert survives_any_size(ready(Bound(assign=assign, cov=cov, slots=3), (4, 2, 2)))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_attention_over_a_batch_that_is_not_finite_costs_only_its_own_penalty(assign, value):
    for cov in COVS:
        assert loses_only(ready(Bound(assign=assign, cov=cov, slots=3), (4, 2, 2)), value)
    assert loses_only(ready(Bound(assign=assign, tokens="spatial", memory=0.9), (4, 2, 2)), value)


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


def test_slots_start_at_the_same_place_in_training_so_that_a_memory_of_them_means_something():
    defence, batch = ready(Bound(assign="slot", slots=3), (2, 3, 3)).train(), example()
    assert defence.penalty(batch) == defence.penalty(batch)


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
    with pytest.raises(ValueError, match="did you mean 'gated'"):
        create_defence("bound", assign="gate")
    with pytest.raises(ValueError, match="did you mean 'spatial'"):
        create_defence("bound", tokens="spacial")
    with pytest.raises(ValueError, match='use cov="gram"'):
        made("channel", 3, latent=(512, 7, 7))
    for tokens in ("spatial", "project"):
        with pytest.raises(ValueError, match='tokens="flat" or "pooled"'):
            create_defence("bound", cov="gram", tokens=tokens)


def test_a_whole_latent_too_large_for_attention_names_the_other_tokens():
    for assign in ("gated", "slot"):
        with pytest.raises(ValueError, match='tokens="spatial" or tokens="pooled" or tokens="project"'):
            ready(Bound(assign=assign), (512, 7, 7))
    ready(Bound(assign="class"), (512, 7, 7))  # no attention, nothing to be too large


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    n=st.integers(2, 10),
    classes=st.integers(1, 3),
    latent=st.sampled_from([(1,), (2,), (1, 1, 2), (2, 1, 1)]),
    assign=st.sampled_from(["class", "gated", "slot"]),
    form=st.sampled_from(FORMS),
    sharpness=st.sampled_from([0.0, 1.0, 5.0]),
    seed=st.integers(0, 9999),
)
@torch.no_grad()
def test_never_below_the_information_of_a_few_points(n, classes, latent, assign, form, sharpness, seed):
    """On equally likely points every expectation is a finite sum, so no sampling error has to be forgiven."""
    generator = torch.Generator().manual_seed(seed)
    z = 0.5 * torch.randn(n, *latent, generator=generator, dtype=torch.double)
    batch = batch_of(z, torch.randint(0, classes, (n,), generator=generator))
    cov, tokens = form
    defence = Bound(assign=assign, cov=cov, tokens=tokens, width=4, slots=3, iters=2)
    defence = ready(defence, latent, classes, 0.2, unlike_start=sharpness, seed=seed)
    counted = list(classes_of(batch).values())
    assume(counted)
    assert defence.nats(batch).item() >= integrated_information(torch.cat(counted).flatten(1), 0.2) - 1e-6


def information(z, sigma, draws):
    """I(x;z) of equally likely points and Gaussian noise, as a mean over noise."""
    z, total = z.flatten(1), 0.0
    for seed in range(draws):
        noise = sigma * torch.randn(z.shape, generator=torch.Generator().manual_seed(1000 + seed), dtype=z.dtype)
        log_density = torch.logsumexp(-torch.cdist(z + noise, z).square() / (2 * sigma**2), 1) - math.log(len(z))
        total += (-noise.square().sum(1) / (2 * sigma**2) - log_density).mean().item()
    return total / draws


def clusters(n, latent, seed=0):
    """Four of them, unequal and overlapping, and which one each sample is from."""
    generator = torch.Generator().manual_seed(seed)
    d = math.prod(latent)
    component = torch.multinomial(torch.tensor([0.4, 0.3, 0.2, 0.1]), n, True, generator=generator)
    centres, narrow = (torch.randn(4, d, generator=generator, dtype=torch.double) for _ in range(2))
    z = 1.5 * centres[component] + 0.5 * narrow[component] * torch.randn(n, d, generator=generator, dtype=torch.double)
    return z.reshape(n, *latent), component


def curve(n, latent, seed=0):
    """All on a line that winds through the space: as far from Gaussian as latents get."""
    t = torch.arange(n, dtype=torch.double) / n * 6.28
    return torch.stack([torch.sin(t * (1 + i // 2) + i) for i in range(math.prod(latent))], 1).reshape(n, *latent)


@pytest.mark.parametrize(("cov", "tokens"), FORMS)
@pytest.mark.parametrize("assign", ["class", "gated", "slot"])
@torch.no_grad()
def test_never_below_the_information_of_many_points_whatever_attention_decides(assign, cov, tokens):
    latent, sigma = (3, 1, 2), 0.5
    n = 250 if cov == "gram" else 500
    mixed, component = clusters(n, latent)
    one, noise = torch.zeros_like(component), torch.arange(n) % 4
    for z, labels in ((mixed, (one, component, noise)), (curve(n, latent), (one, noise))):
        truth = information(z, sigma, draws=4)
        assert 1 < truth < math.log(n) - 1  # neither nothing nor a number for every sample
        for seed, y in enumerate(labels):
            for start in (0.0, 1.0):
                defence = Bound(assign=assign, cov=cov, tokens=tokens, slots=4, width=6)
                defence = ready(defence, latent, 4, sigma, unlike_start=start, seed=seed)
                assert defence.nats(batch_of(z, y)).item() >= truth - 0.03


@pytest.mark.parametrize("assign", ["class", "gated", "slot"])
@torch.no_grad()
def test_gaussian_latents_of_which_the_information_is_known(assign):
    """½ log det(I + AAᵀ/σ²): reached by the full covariance of one class, never undercut."""
    generator = torch.Generator().manual_seed(0)
    mix, sigma = torch.randn(4, 4, generator=generator, dtype=torch.double), 0.4
    z = torch.randn(3000, 4, generator=generator, dtype=torch.double) @ mix.T
    batch = batch_of(z, torch.zeros(3000, dtype=torch.int64))
    truth = 0.5 * torch.logdet(torch.eye(4) + mix @ mix.T / sigma**2).item()
    for cov in ("diag", "channel"):
        for seed in range(3):
            found = ready(Bound(assign=assign, cov=cov), (4,), 1, sigma, seed=seed).nats(batch).item()
            assert found >= truth - 0.05
            if assign == "class":
                assert found > truth + 0.1 if cov == "diag" else found == pytest.approx(truth, rel=0.02)
    if assign != "slot":
        return
    few = batch_of(z[:400], batch.y[:400])  # its matrix is as large as the batch
    for way in ("class", "gated", "slot"):
        assert ready(Bound(assign=way, cov="gram", slots=2), (4,), 1, sigma).nats(few).item() >= truth - 0.1


SEPARATE, NARROW = 0.3, 0.5


def separate():
    """Three round clusters far from each other, the moments of each exact, and what they tell: H + 3·½ log(1+v/σ²)."""
    z, y = [], []
    for c, count in enumerate((400, 1000, 600)):
        own = torch.randn(count, 3, generator=torch.Generator().manual_seed(c), dtype=torch.double)
        own = own - own.mean(0)
        own = own @ torch.linalg.inv(torch.linalg.cholesky(own.T @ own / count)).T
        z.append(4 * torch.eye(3).double()[c] + NARROW * own)
        y += [c] * count
    told = -sum(p * math.log(p) for p in (0.2, 0.5, 0.3))
    return torch.cat(z), torch.tensor(y), told + 1.5 * math.log(1 + NARROW**2 / SEPARATE**2)


@pytest.mark.parametrize("cov", ["diag", "channel"])
def test_within_a_twentieth_of_the_truth_where_classes_are_the_clusters(cov):
    z, y, truth = separate()
    assert information(z, SEPARATE, draws=2) <= truth + 0.05
    assert truth - 1e-6 <= ready(Bound(cov=cov), (3,), 3, SEPARATE).nats(batch_of(z, y)).item() <= 1.05 * truth
    together = ready(Bound(cov=cov), (3,), 1, SEPARATE).nats(batch_of(z, 0 * y)).item()
    assert together > 1.3 * truth


def trained(defence, batch, steps):
    """The bound in every step of training all that the surrogate may move; the latents stay."""
    optimiser, values = torch.optim.Adam(own(defence), lr=0.03), []
    for _ in range(steps):
        optimiser.zero_grad()
        nats = defence.nats(batch)
        nats.backward()
        optimiser.step()
        values.append(nats.item())
    return values


@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_training_the_attention_tightens_the_bound_and_never_breaks_it(assign):
    """The opposite of what befalls a gated variance."""
    z, y, truth = separate()
    defence = ready(Bound(assign=assign, slots=3), (3,), 1, SEPARATE, unlike_start=0.0)
    values = trained(defence, batch_of(z, 0 * y), 40)
    assert min(values) >= truth - 0.01 and values[0] > 1.3 * truth and values[-1] < 0.9 * values[0]
    if assign == "gated":
        assert values[-1] < 1.05 * truth


def test_positions_that_differ_independently_are_all_counted():
    """What one position tells the other does not: the truth is the sum, and trained attention comes close to it."""
    z, _, truth = separate()
    other = z[torch.randperm(len(z), generator=torch.Generator().manual_seed(5))]
    batch = batch_of(torch.stack([z, other], 2).unsqueeze(2), torch.zeros(len(z), dtype=torch.int64))
    defence = ready(Bound(assign="gated", tokens="spatial", slots=3), (3, 1, 2), 1, SEPARATE, unlike_start=0.0)
    values = trained(defence, batch, 40)
    assert 2 * truth - 0.02 <= min(values) and values[-1] < 1.05 * 2 * truth < 0.8 * values[0]


@pytest.mark.parametrize("tokens", ["flat", "spatial"])
@pytest.mark.parametrize("assign", ["gated", "slot"])
def test_training_the_attention_on_a_curve_never_breaks_the_bound(assign, tokens):
    z, sigma = curve(500, (3, 1, 2)), 0.1
    defence = ready(Bound(assign=assign, tokens=tokens, slots=4, iters=1), (3, 1, 2), 1, sigma, unlike_start=0.0)
    values = trained(defence, batch_of(z, torch.zeros(500, dtype=torch.int64)), 60)
    assert information(z, sigma, draws=4) - 0.03 <= min(values) < values[0] - 0.3
