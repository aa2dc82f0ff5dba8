import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.maths import gram_rate
from attcem.metrics.bounds import (
    bounds,
    fano_reidentification,
    fano_success,
    filled_floor,
    mse_floor,
    relative_floor,
)
from attcem.metrics.entropy import image_entropy, image_prior, tile_size, tiles
from attcem.metrics.fisher import fisher_bound
from attcem.metrics.rate_bounds import left_out, rate_bounds

double = torch.double


class Channel:
    """x ~ N(½, Σ), z = A x + ε: everything an attacker could do is known."""

    def __init__(self, seed, d=9, wide=6, sigma=0.05, spread=1.0, n=4000):
        generator = torch.Generator().manual_seed(seed)
        self.sigma, self.d, self.n = sigma, d, n
        axes = torch.linalg.qr(torch.randn(d, d, generator=generator, dtype=double))[0]
        scales = 0.1 * torch.exp(spread * torch.randn(d, generator=generator, dtype=double))
        self.root = axes * scales
        self.cov = self.root @ self.root.T
        self.a = torch.randn(wide, d, generator=generator, dtype=double) / math.sqrt(d)
        self.generator = generator

    def images(self):
        x = 0.5 + torch.randn(self.n, self.d, generator=self.generator, dtype=double) @ self.root.T
        side = math.isqrt(self.d)
        return x.reshape(self.n, 1, side, self.d // side)

    def encode(self, x):
        return x.flatten(1) @ self.a.T

    @property
    def information(self):
        inner = torch.eye(len(self.a), dtype=double) + self.a @ self.cov @ self.a.T / self.sigma**2
        return 0.5 * torch.logdet(inner).item()

    @property
    def least_mse(self):
        posterior = torch.linalg.inv(torch.linalg.inv(self.cov) + self.a.T @ self.a / self.sigma**2)
        return posterior.trace().item() / self.d

    @property
    def entropy(self):
        return 0.5 * torch.logdet(2 * math.pi * math.e * self.cov).item()

    def bounds(self, **options):
        x = self.images()
        return bounds(self.encode(x), labels(len(x)), 3, self.sigma, x, encode=self.encode, **options)


def isotropic(seed=0, sigma=0.1, **options):
    channel = Channel(seed, d=16, wide=16, sigma=sigma, spread=0.0, **options)
    channel.a = torch.eye(16, dtype=double)
    return channel


def labels(n, classes=3):
    return torch.arange(n) % classes


def numbers(tree):
    if isinstance(tree, dict | list):
        return [leaf for inner in (tree.values() if isinstance(tree, dict) else tree) for leaf in numbers(inner)]
    return [tree] if isinstance(tree, int | float) and not isinstance(tree, bool) else []


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 9999),
    d=st.sampled_from([4, 9, 12]),
    wide=st.integers(1, 12),
    sigma=st.sampled_from([0.02, 0.1, 0.5]),
    spread=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_no_bound_crosses_what_a_linear_gaussian_channel_is_known_to_tell(seed, d, wide, sigma, spread):
    channel = Channel(seed, d, wide, sigma, spread)
    found = channel.bounds(jacobians=200)
    assert found["rate_nats"] >= channel.information - 4 * found["rate_stderr"] - 0.01
    assert found["rate"]["one/gram"] <= 1.1 * channel.information + 0.1
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert 0 <= floor <= 1.05 * channel.least_mse


def test_floors_are_tight_where_every_direction_is_alike():
    channel = isotropic()
    found = channel.bounds(jacobians=500)
    assert found["rate_nats"] == pytest.approx(channel.information, rel=0.03)
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert floor == pytest.approx(channel.least_mse, rel=0.05)


def test_a_floor_that_fills_the_axes_is_useful_where_the_even_one_is_not():
    channel = Channel(3, d=16, wide=16, sigma=0.1, spread=2.0)
    found = channel.bounds(jacobians=100)
    assert found["mse_floor_even_estimate"] < channel.least_mse / 3
    assert found["mse_floor_estimate"] > channel.least_mse / 2
    assert found["fisher"]["mse"] > channel.least_mse / 2


def test_a_fitted_attack_stays_above_the_floors():
    channel = Channel(5, d=16, wide=12, sigma=0.05)
    found, (train, test) = channel.bounds(jacobians=200), channel.images().flatten(1).chunk(2)
    sent = [x @ channel.a.T for x in (train, test)]
    sent = [z + channel.sigma * torch.randn(z.shape, dtype=double) for z in sent]
    inputs = [torch.cat([z, torch.ones_like(z[:, :1])], 1) for z in sent]
    mse = (inputs[1] @ torch.linalg.lstsq(inputs[0], train).solution - test).square().mean().item()
    assert mse == pytest.approx(channel.least_mse, rel=0.05)
    assert mse >= found["mse_floor_estimate"] > 0
    assert mse >= found["fisher"]["mse"] > 0


def test_on_real_pictures_the_best_linear_attack_stays_above_the_floors(fashion):
    x, sigma = fashion.test[:1200].pixels(), 0.5
    found = bounds(x, fashion.test.y[:1200], 10, sigma, x, encode=lambda x: x, jacobians=300)
    rows = (x - x.mean(0)).flatten(1).double()
    cov = rows.T @ rows / len(rows)
    gain = torch.linalg.solve(cov + sigma**2 * torch.eye(784, dtype=double), cov)
    mse = ((rows + sigma * torch.randn(rows.shape, dtype=double)) @ gain - rows).square().mean().item()
    assert 0 < found["mse_floor_estimate"] < mse
    assert 0 < found["fisher"]["mse"] < mse
    assert found["rate_form"].endswith("gram")
    assert found["rate"]["learned/gram"] < found["rate"]["one/gram"] < found["rate"]["one/diag"]


def test_fewer_images_than_dimensions_loosen_the_rate_and_do_not_break_it():
    channel = Channel(1, d=100, wide=300, sigma=0.1, spread=0.5, n=120)
    z = channel.encode(channel.images())
    rows = (z - z.mean(0)) / math.sqrt(len(z))
    fitted_and_judged_alike = gram_rate(rows[:90], torch.zeros(90, dtype=torch.int64), 1, channel.sigma).item()
    assert fitted_and_judged_alike < channel.information - 5
    for nats in rate_bounds(z, labels(120), 3, channel.sigma).values():
        assert nats >= channel.information - 2 * nats.stderr


def test_well_separated_classes_cost_their_entropy_and_what_each_tells():
    channel = Channel(2, n=8000)
    y = torch.randint(0, 4, (8000,), generator=torch.Generator().manual_seed(0))
    z = channel.encode(channel.images()) + 5 * torch.randn(4, 6, dtype=double)[y]
    found = rate_bounds(z, y, 4, channel.sigma)
    truth = channel.information + math.log(4)
    assert found["class/gram"] == pytest.approx(truth, rel=0.05)
    assert found["learned/gram"] == pytest.approx(truth, rel=0.08)
    assert found["one/gram"] > 1.2 * truth
    assert min(found.values()) >= truth - 4 * found["class/gram"].stderr


def test_channels_are_turned_alike_at_every_position():
    generator = torch.Generator().manual_seed(0)
    mix = torch.randn(4, 4, generator=generator, dtype=double)
    z = (torch.randn(4000, 9, 4, generator=generator, dtype=double) @ mix.T).transpose(1, 2).reshape(4000, 4, 3, 3)
    truth = 9 * 0.5 * torch.logdet(torch.eye(4) + mix @ mix.T / 0.3**2).item()
    found = rate_bounds(z, labels(4000), 3, 0.3)
    assert found["one/channel"] == pytest.approx(truth, rel=0.02)
    assert found["one/diag"] > 1.1 * truth


def test_the_standard_error_is_that_of_a_repeated_experiment():
    channels = [isotropic(seed, n=400) for seed in range(20)]
    found = [rate_bounds(channel.images(), labels(400), 3, channel.sigma) for channel in channels]
    spread = torch.tensor([float(nats["one/diag"]) for nats in found]).std().item()
    claimed = sum(nats["one/diag"].stderr for nats in found) / len(found)
    assert 0.6 < spread / claimed < 1.6


def test_what_is_too_wide_is_left_out_with_a_reason():
    z = torch.randn(40, 4100, 1)
    assert set(rate_bounds(z, labels(40), 3, 1.0)) == {"one/diag", "class/diag", "learned/diag"}
    assert left_out((4100, 1)).keys() == {"channel", "gram"}
    assert "4100 dimensions" in left_out((41, 10, 10))["gram"]
    assert left_out((6,)).keys() == {"channel"} and not left_out((8, 8, 8))


@pytest.mark.parametrize("classes", [1, 60])
@pytest.mark.parametrize("latent", [(3,), (1,), (2, 3), (2, 2, 2)])
def test_any_shape_any_number_of_classes(latent, classes):
    z = torch.randn(30, *latent)
    found = rate_bounds(z, torch.randint(0, classes, (30,)), classes, 0.5)
    truth = math.prod(latent) * 0.5 * math.log(1 + 1 / 0.25)
    assert all(math.isfinite(nats) and nats > 0.4 * truth for nats in found.values())


def test_a_constant_encoder_tells_nothing():
    x = torch.rand(400, 1, 4, 4)
    found = bounds(torch.full((400, 2), 0.3), labels(400), 3, 0.1, x, encode=lambda x: torch.full((len(x), 2), 0.3))
    assert found["rate_nats"] < 1e-6 and found["fisher"]["trace"] == 0
    assert found["fano"]["success"] == pytest.approx([1 / n for n in found["fano"]["candidates"]], rel=1e-3)
    assert found["mse_floor_estimate"] == pytest.approx(1 / 12, rel=0.15)
    assert found["fisher"]["mse"] == pytest.approx(1 / 12, rel=0.15)


@pytest.mark.parametrize("sigma", [0.0, -1.0, float("nan")])
def test_without_noise_no_number_is_given(sigma):
    x = torch.rand(20, 1, 4, 4)
    found = bounds(x, labels(20), 3, sigma, x, encode=lambda x: x, twin_rate=3.0, not_counted=["dropout"])
    assert found["rate"] is None and found["why"] == "no noise: no bound" and found["not_counted"] == ["dropout"]
    assert len(numbers(found)) == 1  # sigma itself
    with pytest.raises(ValueError, match="add Noise"):
        rate_bounds(x, labels(20), 3, sigma)
    with pytest.raises(ValueError, match="add Noise"):
        fisher_bound(lambda x: x, x, sigma)


def test_the_same_seed_gives_the_same_plain_numbers():
    first, again, other = (Channel(7).bounds(seed=seed, jacobians=50, twin_rate=20.0) for seed in (0, 0, 1))
    assert json.dumps(first, allow_nan=False) == json.dumps(again, allow_nan=False)
    assert first["rate_nats"] != other["rate_nats"] and first["fisher"]["trace"] != other["fisher"]["trace"]
    assert first["relative_floor"] == pytest.approx(math.exp(2 * (20 - first["rate_nats"]) / 9))


def test_too_few_or_broken_samples_are_refused():
    with pytest.raises(ValueError, match="at least 8"):
        rate_bounds(torch.randn(7, 3), labels(7), 3, 1.0)
    with pytest.raises(ValueError, match="not finite"):
        rate_bounds(torch.full((9, 3), torch.nan), labels(9), 3, 1.0)


def test_the_trace_lies_within_its_error_of_the_exact_one():
    generator = torch.Generator().manual_seed(0)
    weight, x = torch.randn(5, 16, generator=generator), torch.rand(60, 1, 4, 4, generator=generator)
    sigma = 0.3

    def encode(x):
        return torch.tanh(3 * x.flatten(1) @ weight.T)

    jacobians = torch.func.vmap(torch.func.jacrev(lambda one: encode(one.unsqueeze(0)).squeeze(0)))(x)
    exact = jacobians.square().sum().item() / len(x) / sigma**2
    found = fisher_bound(encode, x, sigma, probes=8)
    assert abs(found["trace"] - exact) < 4 * found["trace_stderr"]
    assert found["trace_stderr"] < 0.3 * exact
    again = [fisher_bound(encode, x, sigma, probes=8, seed=seed)["trace"] for seed in range(1, 21)]
    assert sum(again) / 20 == pytest.approx(exact, rel=0.05)


def test_the_fisher_bound_is_never_below_its_trace_form():
    for seed in range(5):
        channel = Channel(seed, d=16, wide=8)
        x = channel.images()
        found = fisher_bound(channel.encode, x[:500], channel.sigma, prior=image_prior(x))
        assert found["mse"] >= 16 / (found["trace"] + found["prior_trace"]) - 1e-5


def test_entropy_is_met_on_gaussian_images_and_exceeded_on_others():
    channel = Channel(4, d=16)
    assert image_entropy(channel.images())[0] == pytest.approx(channel.entropy, abs=0.5)
    nats, how = image_entropy(torch.rand(4000, 1, 4, 4))
    assert 0 < nats < 16 * 0.5 * math.log(2 * math.pi * math.e / 12) + 0.2  # of uniform pixels it is 0
    assert "over-estimate" in how


def test_images_in_clusters_have_less_entropy_than_one_gaussian_sees():
    centres = torch.rand(4, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    x = centres[torch.arange(4000) % 4] + 0.02 * torch.randn(4000, 1, 4, 4)
    truth = math.log(4) + 16 * 0.5 * math.log(2 * math.pi * math.e * 0.02**2)
    prior = image_prior(x)
    assert len(prior.share) > 1
    assert prior.total == pytest.approx(truth, abs=2.0)
    one_gaussian = 0.5 * torch.logdet(2 * math.pi * math.e * x.flatten(1).double().T.cov()).item()
    assert one_gaussian > truth + 5
    assert filled_floor(0.0, prior.entropy, prior.share) == pytest.approx(0.02**2, rel=0.15)


def test_pixels_that_few_images_use_do_not_raise_the_floor_above_what_images_differ_by(small):
    x = small.test[:40].pixels()
    found = bounds(x, small.test.y[:40], 10, 0.5, x, encode=lambda x: x)
    for floor in (found["mse_floor_estimate"], found["mse_floor_even_estimate"], found["fisher"]["mse"]):
        assert 0 < floor < 2 * x.var(0).mean()


def test_large_images_are_cut_into_tiles_that_fit():
    assert tile_size(3, 32, 32) == (32, 32)
    assert tile_size(3, 64, 64) == (16, 16)
    assert tile_size(1, 112, 92) == (16, 46)
    assert tile_size(3, 97, 89) == (97, 1)
    x = torch.arange(2 * 2 * 4 * 6).reshape(2, 2, 4, 6).float()
    cut = tiles(x, (2, 3))
    assert cut.shape == (2, 4, 12)
    torch.testing.assert_close(cut[1, 3].reshape(2, 2, 3), x[1, :, 2:, 3:])


def test_tiles_of_independent_pixels_have_the_entropy_of_the_whole(monkeypatch):
    x = 0.5 + 0.1 * torch.randn(3000, 1, 4, 6)
    whole = image_prior(x)
    monkeypatch.setattr("attcem.metrics.entropy.WHOLE", 10)
    monkeypatch.setattr("attcem.metrics.entropy.TILE", 8)
    cut = image_prior(x)
    assert (cut.tile, len(cut.axes)) == ((4, 2), 3) and "3 tiles of 4×2" in cut.how
    assert cut.total == pytest.approx(whole.total, abs=0.3)
    torch.testing.assert_close(cut.along(x).square().sum(1).float(), x.square().sum((1, 2, 3)), rtol=1e-5, atol=0)


@settings(max_examples=50, deadline=None)
@given(
    rate=st.floats(0, 60),
    spread=st.sampled_from([0.0, 1.0, 4.0]),
    groups=st.integers(1, 3),
    seed=st.integers(0, 9999),
)
def test_water_finds_its_level(rate, spread, groups, seed):
    generator = torch.Generator().manual_seed(seed)
    entropies = spread * torch.randn(groups, 7, generator=generator, dtype=double)
    share = torch.rand(groups, generator=generator, dtype=double).softmax(0)
    power = (2 * entropies).exp() / (2 * math.pi * math.e)
    low, high = 1e-30, power.max().item()
    for _ in range(300):
        level = math.sqrt(low * high)
        spent = (share.unsqueeze(1) * 0.5 * (power / level).log().clamp_min(0)).sum().item()
        low, high = (level, high) if spent > rate else (low, level)
    slow = (share.unsqueeze(1) * power.clamp_max(high)).sum().item() / 7
    floor = filled_floor(rate, entropies, share)
    assert floor == pytest.approx(slow, rel=1e-6)
    if groups == 1:
        assert floor >= mse_floor(rate, entropies.sum().item(), 7) * (1 - 1e-9)


def test_a_group_without_images_does_not_count():
    entropies = torch.tensor([[0.0, 1.0], [50.0, 50.0]])
    alone = filled_floor(1.0, entropies[:1], torch.ones(1))
    assert filled_floor(1.0, entropies, torch.tensor([1.0, 0.0])) == pytest.approx(alone)


def test_relative_floor_needs_both_rates():
    assert relative_floor(10.0, 30.0, 20) == pytest.approx(math.exp(2))
    assert relative_floor(None, 1.0, 9) is None and relative_floor(1.0, None, 9) is None


@pytest.mark.parametrize("candidates", [2, 16, 64])
@pytest.mark.parametrize("sigma", [1.5, 4.0])
def test_nobody_finds_the_image_more_often_than_fano_allows(candidates, sigma):
    generator, d, trials, queries = torch.Generator().manual_seed(0), 4, 4000, 2
    book = torch.randn(trials, candidates, d, generator=generator)
    sent = book[:, 0] + sigma / math.sqrt(queries) * torch.randn(trials, d, generator=generator)
    nearest = (book - sent.unsqueeze(1)).square().sum(-1).argmin(1)
    success = (nearest == 0).float().mean().item()
    nats = d * 0.5 * math.log(1 + 1 / sigma**2)
    allowed = fano_success(queries * nats, candidates)
    assert 1.2 / candidates < success <= allowed + 0.02
    assert allowed <= min(1.0, (queries * nats + math.log(2)) / math.log(candidates))


def test_fano_is_exact_at_its_ends_and_says_where_it_is_vacuous():
    assert fano_success(0.0, 50) == pytest.approx(1 / 50)
    assert fano_success(math.log(50), 50) == 1.0
    table = fano_reidentification(3.0, [10, 10**6], [1, 10])
    assert table["candidates"] == [10, 10, 10**6, 10**6] and table["queries"] == [1, 10, 1, 10]
    assert table["vacuous"] == [True, True, False, True]
    assert 1e-6 < table["success"][2] < 1
    with pytest.raises(ValueError, match="2 or more"):
        fano_success(1.0, 1)
