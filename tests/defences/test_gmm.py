"""The clustered penalty against a slow loop over classes, clusters and samples."""

import inspect
import math
import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import Noise
from attcem.defences import gmm as module
from attcem.defences.gmm import GMM, Pool
from attcem.types import Batch

FORMS, TOKENS, STATE = ["hinge", "variance", "logdet"], ["flat", "spatial", "pooled"], ["mu", "pi", "var", "count"]
SIGMA = 0.3
EXACT = {"atol": 1e-9, "rtol": 1e-9}

every_form = pytest.mark.parametrize("form", FORMS)
every_token = pytest.mark.parametrize("tokens", TOKENS)


def batch_of(z, y):
    return Batch(torch.zeros(len(z), 1, 2, 2, dtype=z.dtype), y, z)


def made(classes=3, latent=(2, 2, 3), sigma=SIGMA, fit=(), dtype=torch.double, **options):
    defence = GMM(**options)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    defence.to(dtype).review(fit)
    return defence


def example(n=12, latent=(2, 2, 3), classes=3, seed=1, dtype=torch.double):
    z = torch.randn(n, *latent, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return batch_of(z.requires_grad_(), torch.arange(n) % classes)


def fitted(dtype=torch.double, fit=60, **options):
    return made(fit=[example(fit, seed=2, dtype=dtype)], dtype=dtype, **options)


@st.composite
def drawn_batches(draw):
    """A batch to fit, a batch to penalise, and the number of classes, few of which are in either."""
    classes, latent = draw(st.sampled_from([1, 3, 8, 600])), draw(st.sampled_from([(1,), (4,), (3, 1, 1), (2, 2, 3)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    names = torch.randperm(classes, generator=generator)[: draw(st.integers(1, 4))]
    scale, same, constant = draw(st.sampled_from([1e-3, 1.0, 30.0])), draw(st.booleans()), draw(st.booleans())

    def batch(n):
        z = scale * torch.randn(n, *latent, generator=generator, dtype=torch.double)
        z = z[torch.arange(n) // 4] if same else z
        if constant:
            z[:, 0] = 0.5
        return batch_of(z, names[torch.randint(0, len(names), (n,), generator=generator)])

    return batch(draw(st.integers(1, 60))), batch(draw(st.integers(1, 12))), classes


def rows_of(one, tokens):
    """The tokens of one latent."""
    if one.ndim == 1 or tokens == "flat":
        return [one.flatten()]
    positions = [one[:, i, j] for i in range(one.shape[1]) for j in range(one.shape[2])]
    return positions if tokens == "spatial" else [sum(positions) / len(positions)]


def slow_variances(defence, batch):
    """Class → cluster → π and v̂ of every feature, from the equations."""
    found = {}
    for c in sorted(set(batch.y.tolist())):
        own, clusters = batch.z.detach()[batch.y == c], range(defence.clusters)
        if len(own) < 2 or defence.count[c] == 0:
            continue
        mu, pi, var, seen = (getattr(defence, name)[c] for name in STATE)
        live = [k for k in clusters if pi[k] > 0]
        members = {k: [] for k in live}
        for row in [row for one in own for row in rows_of(one, defence.tokens)]:
            members[min(live, key=lambda k: ((row - mu[k]) ** 2).sum().item())].append(row)
        found[c] = {}
        for k in live:
            rho = min(0.99, 10 * len(members[k]) / (pi[k] * seen).item())
            here = sum((row - mu[k]) ** 2 for row in members[k]) / max(1, len(members[k]))
            found[c][k] = pi[k].item(), (rho * here + (1 - rho) * var[k]).tolist()
    return found


def slow_penalty(defence, batch, theta=None):
    """The mean over classes of Σ_k π_k · what a cluster loses."""
    found, tau, gamma, sigma = slow_variances(defence, batch), defence.var_threshold, defence.gamma, defence.sigma_n
    theta = tau * sigma**2 + gamma if theta is None else theta

    def lost(pi, var):
        spread = sum(var) / len(var)
        if defence.form == "hinge":
            return max(0.0, math.log(spread + gamma) - math.log(theta))
        if defence.form == "variance":
            return spread + 0.001
        return -math.log(pi) + sum(0.5 * math.log(1 + v / sigma**2) for v in var)

    losses = [sum(pi * lost(pi, var) for pi, var in of_class.values()) for of_class in found.values()]
    return sum(losses) / max(1, len(losses))


@every_form
@every_token
@settings(max_examples=25, deadline=None, derandomize=True)
@given(drawn=drawn_batches())
def test_equal_to_the_slow_loop(form, tokens, drawn):
    first, batch, classes = drawn
    defence = made(classes, first.z.shape[1:], form=form, tokens=tokens, fit=[first])
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch), rel=1e-9, abs=1e-9)


@every_form
@every_token
def test_equal_to_the_slow_loop_where_old_and_new_variances_blend(form, tokens):
    batch, defence = example(9), fitted(form=form, tokens=tokens, fit=300)
    found = defence.penalty(batch).item()
    assert found == pytest.approx(slow_penalty(defence, batch), rel=1e-9)
    assert found > 0 and found != pytest.approx(fitted(form=form, tokens=tokens, fit=30).penalty(batch).item())


@pytest.mark.parametrize("threshold", ["constant", "schedule", "quantile"])
def test_every_threshold_is_the_one_it_says(threshold):
    batch, defence = example(), fitted(threshold=threshold)
    defence.progress = 0.25
    spreads = [sum(var) / len(var) for found in slow_variances(defence, batch).values() for _, var in found.values()]
    theta = {
        "constant": 0.05,
        "schedule": (0.125 * SIGMA**2 + 0.01) ** 0.25,
        "quantile": statistics.median_low(spreads) + 0.01,
    }[threshold]
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch, theta), rel=1e-9)


@pytest.mark.parametrize("threshold", ["noise", "quantile"])
def test_a_cluster_without_weight_takes_no_sample_and_has_no_say(threshold):
    batch, defence = example(), fitted(threshold=threshold)
    before = defence.penalty(batch).item()
    for name in ("pi", "var"):
        getattr(defence, name)[:, :2] = 0
    spreads = [sum(var) / len(var) for found in slow_variances(defence, batch).values() for _, var in found.values()]
    theta = statistics.median_low(spreads) + 0.01 if threshold == "quantile" else None
    assert len(spreads) == 9 and defence.penalty(batch).item() != pytest.approx(before)
    assert defence.penalty(batch).item() == pytest.approx(slow_penalty(defence, batch, theta), rel=1e-9)


@every_form
@every_token
@settings(max_examples=15, deadline=None, derandomize=True)
@given(drawn=drawn_batches(), seed=st.integers(0, 99))
def test_sample_order_and_class_names_do_not_matter(form, tokens, drawn, seed):
    first, batch, classes = drawn
    generator = torch.Generator().manual_seed(seed)
    order, rename = torch.randperm(len(batch.y), generator=generator), torch.randperm(classes, generator=generator)
    defence = made(classes, first.z.shape[1:], form=form, tokens=tokens, fit=[first])
    before = defence.penalty(batch)
    for name in STATE:
        old = getattr(defence, name).clone()
        getattr(defence, name)[rename] = old
    after = defence.penalty(batch_of(batch.z[order], rename[batch.y[order]]))
    torch.testing.assert_close(after, before, **EXACT)


@every_form
def test_statistics_are_those_of_the_class_itself(form):
    z, y = example(60).z.detach(), torch.arange(60) % 6
    wide = batch_of(z * (1 + y)[:, None, None, None], y)
    defence = made(6, form=form, fit=[wide])
    late = batch_of(wide.z[y >= 4], y[y >= 4])
    right, wrong = made(2, form=form), made(2, form=form)
    for name in STATE:
        getattr(right, name).copy_(getattr(defence, name)[4:])
        getattr(wrong, name).copy_(getattr(defence, name)[:2])
    alone = batch_of(late.z, late.y - 4)
    torch.testing.assert_close(defence.penalty(late), right.penalty(alone), **EXACT)
    assert not torch.isclose(wrong.penalty(alone), right.penalty(alone), rtol=1e-3)


def test_every_class_counts_the_same():
    z, y = example(10).z.detach(), torch.tensor([0] * 8 + [1] * 2)
    z[8:] *= 5
    defence = made(2, form="variance", fit=[batch_of(z, y)])
    first, second = (defence.penalty(batch_of(z[y == c], y[y == c])) for c in (0, 1))
    torch.testing.assert_close(defence.penalty(batch_of(z, y)), (first + second) / 2)


def test_the_diagonal_is_never_below_the_determinant_of_what_was_fitted():
    batch = example(40, latent=(4,), classes=1)
    mixed = batch_of(batch.z.detach() @ torch.randn(4, 4, dtype=torch.double), batch.y)
    found = made(1, (4,), form="logdet", clusters=1, fit=[mixed]).penalty(mixed)
    full = 0.5 * torch.logdet(torch.eye(4) + mixed.z.T.cov(correction=0) / SIGMA**2)
    assert full * 1.01 < found
    apart = batch_of(torch.linalg.svd(mixed.z - mixed.z.mean(0), full_matrices=False)[0], batch.y)
    exact = 0.5 * torch.logdet(torch.eye(4) + apart.z.T.cov(correction=0) / SIGMA**2)
    torch.testing.assert_close(made(1, (4,), form="logdet", clusters=1, fit=[apart]).penalty(apart), exact)


@every_form
@every_token
def test_gradient_is_right_and_absent_for_a_sample_alone_in_its_class(form, tokens):
    z, y = example(7).z, torch.tensor([0, 0, 2, 2, 2, 0, 1])
    defence = fitted(form=form, tokens=tokens)
    assert torch.autograd.gradcheck(lambda z: defence.penalty(batch_of(z, y)), z)
    defence.penalty(batch_of(z, y)).backward()
    assert z.grad[:6].flatten(1).abs().sum(1).min() > 0 and not z.grad[6].any()


@every_form
def test_without_clusters_or_without_pairs_a_zero_keeps_the_graph(form):
    for defence, batch in [(made(form=form), example()), (fitted(form=form), example(3))]:
        penalty = defence.penalty(batch)
        penalty.backward()
        assert penalty.item() == 0 and not batch.z.grad.any() and defence.lost == 0


@every_form
def test_classes_without_clusters_are_left_out(form):
    batch = example(30)
    defence = made(form=form, fit=[batch_of(batch.z[batch.y < 2], batch.y[batch.y < 2])])
    defence.penalty(batch).backward()
    assert batch.z.grad[batch.y < 2].any() and not batch.z.grad[batch.y == 2].any()


@every_form
@every_token
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_a_penalty_that_is_not_finite_becomes_a_zero_that_keeps_the_graph_and_is_counted(form, tokens, value):
    batch = example(dtype=torch.float32)
    z = batch.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    defence = fitted(torch.float32, form=form, tokens=tokens)
    penalty = defence.penalty(batch_of(z, batch.y))
    penalty.backward()
    assert (penalty.item(), z.grad.isfinite().all(), z.grad.any(), defence.lost) == (0, True, False, 1)
    assert defence.penalty(batch) > 0 and defence.lost == 1


@every_form
@every_token
def test_latents_of_any_size_have_finite_penalties_and_gradients(form, tokens):
    batch = example(dtype=torch.float32)
    once = fitted(torch.float32, form=form, tokens=tokens)
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 38, 2))]:
        z = (scale * batch.z.detach()).requires_grad_()
        again = made(form=form, tokens=tokens, fit=[batch_of(z, batch.y)], dtype=torch.float32)
        assert all(getattr(again, name).isfinite().all() for name in STATE), scale
        for defence in (once, again):
            penalty = defence.penalty(batch_of(z, batch.y))
            penalty.backward()
            assert penalty.isfinite() and penalty >= 0 and z.grad.isfinite().all(), scale
    assert once.lost > 0


def test_a_sample_that_is_no_number_does_not_spoil_the_fit():
    batch = example()
    z = batch.z.detach().clone()
    z[0], z[1, 0] = torch.nan, torch.inf
    spoilt, clean = made(fit=[batch_of(z, batch.y)]), made(fit=[batch_of(z[2:], batch.y[2:])])
    for name in STATE:
        assert getattr(spoilt, name).isfinite().all()
        torch.testing.assert_close(getattr(spoilt, name), getattr(clean, name))


def blobs(seed, classes=2, k=3, each=8, latent=(2, 2, 3)):
    """A batch of well separated clusters, and their centres."""
    mu = 20 * torch.randn(classes, k, 12, generator=torch.Generator().manual_seed(7), dtype=torch.double)
    noise = torch.randn(each, classes, k, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    y = torch.arange(classes).repeat_interleave(k).repeat(each)
    return batch_of((mu + 0.1 * noise).reshape(-1, *latent), y), mu


def test_a_review_of_all_batches_finds_the_centres():
    (first, mu), (second, _) = blobs(1), blobs(2)
    defence = made(2, clusters=3, fit=iter([first, second]))
    closest = torch.cdist(mu, defence.mu).argmin(2)
    assert torch.equal(closest.sort(1).values, torch.arange(3).expand(2, 3))
    both = torch.cat([first.z, second.z]).flatten(1).reshape(16, 2, 3, 12)
    for c in range(2):
        torch.testing.assert_close(defence.mu[c, closest[c]], both[:, c].mean(0), **EXACT)
        torch.testing.assert_close(defence.var[c, closest[c]], both[:, c].var(0, correction=0), **EXACT)
    torch.testing.assert_close(defence.pi, torch.full((2, 3), 1 / 3, dtype=torch.double))
    assert defence.count.tolist() == [48, 48]


def test_a_review_starts_from_the_clusters_before():
    batch, _ = blobs(1)
    turned = batch_of(batch.z.flip(0) + 0.5, batch.y.flip(0))
    defence, fresh = made(2, clusters=3, fit=[batch]), made(2, clusters=3, fit=[turned])
    before = defence.mu.clone()
    defence.review([turned])
    torch.testing.assert_close(defence.mu, before + 0.5, **EXACT)
    assert not torch.allclose(fresh.mu, before + 0.5)


def test_a_review_of_nothing_changes_nothing():
    defence = fitted()
    before = defence.count.clone()
    defence.review([])
    assert torch.equal(defence.count, before) and before.any()


def test_the_first_batch_gives_clusters_and_later_ones_do_not():
    defence, first = made(), example(30, seed=3)
    defence.observe(first)
    assert defence.penalty(first) > 0
    torch.testing.assert_close(defence.mu, made(fit=[first]).mu)
    before = defence.mu.clone()
    defence.observe(example(30, seed=4))
    assert torch.equal(defence.mu, before)


def test_every_position_is_a_sample_of_its_class():
    z = torch.randn(6, 2, 2, 3, dtype=torch.double)
    y = torch.tensor([0, 0, 0, 2, 2, 2])
    spatial = made(3, form="logdet", tokens="spatial", fit=[batch_of(z, y)])
    alone = batch_of(z.flatten(2).transpose(1, 2).reshape(36, 2), y.repeat_interleave(6))
    flat = made(3, (2,), form="logdet", fit=[alone])
    assert spatial.count.tolist() == [18, 0, 18] and spatial.mu.shape == (3, 5, 2)
    torch.testing.assert_close(spatial.penalty(batch_of(z, y)), flat.penalty(alone), **EXACT)


def test_of_too_many_tokens_some_are_fitted_and_all_are_counted(monkeypatch):
    batches = [example(20, seed=seed) for seed in range(5)]
    full = made(tokens="spatial", fit=batches)
    monkeypatch.setattr(module, "FITTED", 90)
    few, again = (made(tokens="spatial", fit=batches) for _ in range(2))
    assert torch.equal(few.count, full.count) and few.count.sum() == 600
    assert torch.equal(few.mu, again.mu) and not torch.allclose(few.mu, full.mu)
    assert (few.pi * 90).sum() == pytest.approx(3 * 90) and few.pi[few.pi > 0].min() > 1 / 90


def test_every_token_is_as_likely_to_be_kept_as_any_other():
    generator, kept = torch.Generator().manual_seed(0), torch.zeros(60)
    for _ in range(1000):
        pool = Pool(10, generator)
        for rows in torch.arange(60.0).unsqueeze(1).split(6):
            pool.add(rows, torch.zeros(6, dtype=torch.int64))
            assert sum(len(owner) for _, owner, _ in pool.parts) <= 20
        rows = pool.drawn()[0].flatten().long()
        assert len(rows.unique()) == 10
        kept[rows] += 1
    assert (kept / 1000 - 1 / 6).abs().max() < 0.05


def test_clusters_are_saved_and_resumed():
    batch, defence, other = example(), fitted(), made()
    assert other.penalty(batch) == 0
    other.load_state_dict(defence.state_dict())
    assert torch.equal(other.penalty(batch), defence.penalty(batch)) and set(STATE) <= set(defence.state_dict())
    defence.review([batch]), other.review([batch])
    assert torch.equal(other.mu, defence.mu)


@every_form
def test_following_the_gradient_makes_clusters_narrow(form):
    batch, defence = example(30), made(form=form, fit=[example(30)])
    z = batch.z.detach().clone().requires_grad_()
    optimiser = torch.optim.SGD([z], lr=3.0)
    for _ in range(50):
        optimiser.zero_grad()
        defence.penalty(batch_of(z, batch.y)).backward()
        optimiser.step()
    after = made(form="variance", fit=[batch_of(z.detach(), batch.y)])
    assert after.var.mean() < 0.5 * made(form="variance", fit=[batch]).var.mean()


def test_half_precision_latents_are_penalised_in_single():
    batch, defence = example(dtype=torch.float32), fitted(torch.float32)
    found = defence.penalty(batch_of(batch.z.bfloat16(), batch.y))
    assert found.dtype == torch.float32 and found.item() == pytest.approx(defence.penalty(batch).item(), rel=0.02)


def test_the_scale_is_a_factor_and_readings_show_the_clusters():
    batch, defence, double = example(), fitted(), fitted(loss_scale=2.0)
    defence.watched = True
    torch.testing.assert_close(2 * defence.penalty(batch), double.penalty(batch))
    assert defence.readings["slot_mass"].shape == (5,) and defence.readings["slot_mass"].sum() == pytest.approx(1)


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
    assert GMM(form=form, threshold=threshold).needs_noise is needs
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
