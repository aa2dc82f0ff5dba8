"""An adversary that learns by its own means, and an encoder that is told how well it fares."""

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import ARL, Noise, create_defence, own_parameters
from attcem.defences.adversary import METRICS, Adversary, Painter, adam_step, standardised
from attcem.metrics import image
from attcem.types import Batch
from tests.probes import Blank, weighted_penalty

SMALL = {"channels": 8, "blocks": 1}


def coarse_batch(n=24, dtype=torch.float32):
    """Images of soft shapes, and their means of 4×4 pixels as latents: much of what can be seen is in them."""
    generator = torch.Generator().manual_seed(0)
    x = F.interpolate(torch.rand(n, 1, 4, 4, generator=generator, dtype=dtype), (16, 16), mode="bilinear")
    return Batch(x, torch.arange(n) % 4, F.avg_pool2d(x, 4).requires_grad_())


def made(defence, latent=(1, 4, 4)):
    torch.manual_seed(1)
    defence.setup(latent=latent, classes=4, sigma=defence.sigma)
    return defence


def taught(defence, batch, times=60):
    for _ in range(times):
        defence.observe(Batch(batch.x, batch.y, batch.z.detach()))
    return defence


def state(defence):
    return {name: tensor.clone() for name, tensor in defence.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@settings(max_examples=15)
@given(st.integers(1, 9), st.floats(1e-4, 0.1), st.integers(1, 12), st.integers(0, 999))
def test_a_step_is_that_of_adam(size, lr, steps, seed):
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(size, generator=generator, dtype=torch.double).requires_grad_()
    mine, first, second = weight.detach().clone(), torch.zeros_like(weight), torch.zeros_like(weight)
    theirs = torch.optim.Adam([weight], lr=lr)
    for step in range(1, steps + 1):
        weight.grad = torch.randn(size, generator=generator, dtype=torch.double)
        change, first, second = adam_step(weight.grad, first.detach(), second.detach(), step, lr)
        mine = mine + change
        theirs.step()
    torch.testing.assert_close(mine, weight.detach(), rtol=1e-9, atol=1e-12)


@settings(max_examples=15)
@given(st.integers(2, 9), st.sampled_from([(3,), (2, 3, 4)]), st.sampled_from([1e-4, 1.0, 1e6]), st.integers(0, 999))
def test_latents_are_standardised_as_batch_norm_does(n, latent, scale, seed):
    z = scale * torch.randn(n, *latent, generator=torch.Generator().manual_seed(seed), dtype=torch.double)
    torch.testing.assert_close(standardised(z), F.batch_norm(z, None, None, training=True), rtol=1e-9, atol=1e-9)


@settings(max_examples=15)
@given(
    st.sampled_from([(3,), (2, 5), (2, 1, 1), (3, 4, 4), (1, 30, 30), (2, 3, 7)]),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 40),
)
def test_it_paints_images_of_any_shape_from_latents_of_any_shape(latent, planes, height, width):
    painter = Painter(latent, channels=4, blocks=1)
    guess = painter(torch.randn(2, *latent), (planes, height, width))
    assert guess.shape == (2, planes, height, width) and guess.min() >= 0 and guess.max() <= 1


def test_more_colours_than_it_paints_are_refused():
    with pytest.raises(ValueError, match="at most 4"):
        Painter((3,), channels=4, blocks=1)(torch.randn(2, 3), (5, 8, 8))


@pytest.mark.parametrize("threshold", [-0.2, 0.01, 0.5])
@pytest.mark.parametrize("metric", METRICS)
def test_the_penalty_is_what_the_guess_exceeds_the_threshold_by(metric, threshold):
    batch = coarse_batch(dtype=torch.double)
    defence = taught(made(ARL(metric=metric, threshold=threshold, **SMALL)).double(), batch, times=10)
    guess = defence.adversary.painter(standardised(batch.z), batch.x.shape[1:])
    expected = {
        "ssim": lambda: max(0.0, image.structural_similarity(guess, batch.x).mean().item() - threshold),
        "mse": lambda: max(0.0, threshold - (guess - batch.x).square().mean().item()),
    }[metric]()
    assert defence.penalty(batch).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_without_a_threshold_the_metrics_own_is_taken():
    assert [ARL(metric=metric).harmless for metric in ("ssim", "mse")] == [0.3, 0.05]


@pytest.mark.parametrize("metric", METRICS)
def test_the_penaltys_gradient_at_the_latent_is_right(metric):
    batch = coarse_batch(n=4, dtype=torch.double)
    defence = made(ARL(metric=metric, threshold={"ssim": -1.0, "mse": 1.0}[metric], **SMALL)).double()

    def penalty(z):
        return defence.penalty(Batch(batch.x, batch.y, z))

    assert torch.autograd.gradcheck(penalty, batch.z, fast_mode=True)


@pytest.mark.parametrize("asked", [False, True])
def test_no_gradient_of_the_penalty_reaches_the_adversary(asked):
    batch, defence = coarse_batch(), made(ARL(threshold=-1.0, **SMALL))
    assert own_parameters(defence) == [] and len(list(defence.parameters())) > 0
    defence.requires_grad_(asked)
    defence.penalty(batch).backward()
    assert batch.z.grad.abs().sum() > 0
    assert all(p.grad is None for p in defence.adversary.parameters())


def test_penalties_never_change_the_adversary_and_observing_gives_no_parameter_a_gradient():
    batch, defence = coarse_batch(), made(ARL(**SMALL))
    before = state(defence.adversary)
    defence.penalty(batch).backward()
    assert same(state(defence.adversary), before)
    taught(defence, batch, times=1)
    assert not same(state(defence.adversary), before)
    assert all(p.grad is None and not p.requires_grad for p in defence.parameters())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("latent", [(1, 4, 4), (16,)], ids=str)
def test_the_adversary_learns(metric, latent):
    batch = coarse_batch()
    batch = Batch(batch.x, batch.y, batch.z.detach().reshape(-1, *latent))
    defence = made(ARL(metric=metric, **SMALL), latent)

    def error():
        return -defence.judge.sign * defence.adversary(batch.z, batch.x, defence.judge.score)

    before = error()
    after = [(taught(defence, batch, times=20), error().item())[1] for _ in range(3)]
    assert before > after[0] > after[1] > after[2]
    score = -defence.judge.sign * after[2]
    assert score > 0.5 if metric == "ssim" else score < 0.02


def test_an_adversary_learns_under_no_grad_too():
    batch, defence = coarse_batch(), made(ARL(**SMALL))
    before = state(defence.adversary)
    with torch.no_grad():
        taught(defence, batch, times=1)
    assert not same(state(defence.adversary), before)


def test_latents_that_carry_less_are_penalised_less():
    batch = coarse_batch()
    penalties = []
    for sigma in (0.0, 0.1, 1.0):
        chain = made(Noise(sigma) + ARL(threshold=-1.0, **SMALL))
        penalties.append(weighted_penalty(taught(chain, batch), batch).item())
    assert penalties[0] > penalties[1] + 0.1 and penalties[1] > penalties[2] + 0.1


def test_an_encoder_that_shrinks_its_latents_gains_nothing():
    batch, defence = coarse_batch(), made(ARL(threshold=-1.0, **SMALL))
    taught(defence, batch, times=10)
    smaller = Batch(batch.x, batch.y, 0.3 * batch.z - 7)
    torch.testing.assert_close(defence.penalty(smaller), defence.penalty(batch), rtol=1e-2, atol=1e-2)


def test_the_adversary_sees_what_the_whole_chain_releases(monkeypatch):
    batch, sigma = coarse_batch(n=200), 0.5
    chain = made(ARL(steps=2, **SMALL) + Noise(sigma))
    seen = []
    monkeypatch.setattr(Adversary, "learn", lambda self, released, x, metric: seen.append(released))
    taught(chain, batch, times=1)
    noise = [released - batch.z.detach() for released in seen]
    assert [part.std().item() for part in noise] == pytest.approx([sigma, sigma], rel=0.1)
    assert abs((noise[0] * noise[1]).mean().item()) < 0.1 * sigma**2, "the same noise twice"


def test_the_penalty_sees_what_the_whole_chain_releases():
    batch = coarse_batch()
    chain = made(ARL(threshold=-1.0, **SMALL) + Blank())
    assert not weighted_penalty(chain, batch).requires_grad
    alone = made(ARL(threshold=-1.0, **SMALL))
    assert torch.autograd.grad(alone.penalty(batch), batch.z)[0].any()


def test_a_copied_chain_shows_its_adversary_its_own_release():
    chain = made(Noise(0.1) + ARL(**SMALL))
    again = copy.deepcopy(chain)
    again.links[0].sigma = 0.0
    z = torch.rand(3, 1, 4, 4)
    assert torch.equal(again.links[1].release_all(z), z) and not torch.equal(chain.links[1].release_all(z), z)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_latent_that_is_not_finite_costs_nothing_but_its_own_penalty(value):
    batch, defence = coarse_batch(), made(ARL(threshold=-1.0, **SMALL))
    z = batch.z.detach().clone()
    z[0, 0, 0, 0] = value
    z.requires_grad_()
    broken = Batch(batch.x, batch.y, z)
    penalty = defence.penalty(broken)
    penalty.backward()
    assert (penalty.item(), z.grad.any().item(), "lost" in broken.readings) == (0.0, False, True)
    before = state(defence)
    defence.observe(Batch(batch.x, batch.y, z.detach()))
    assert same(state(defence), before)
    assert defence.penalty(batch) > 0 and "lost" not in batch.readings


def test_images_that_are_not_finite_do_not_poison_the_adversary():
    batch, defence = coarse_batch(), made(ARL(**SMALL))
    before = state(defence)
    defence.observe(Batch(batch.x * float("nan"), batch.y, batch.z.detach()))
    assert same(state(defence), before)


def test_latents_of_any_size_have_finite_penalties_and_gradients_and_leave_an_adversary_that_learns():
    batch, defence = coarse_batch(), made(ARL(threshold=-1.0, **SMALL))
    for scale in [0.0, *(10.0**exponent for exponent in range(-44, 39, 3))]:
        z = (scale * batch.z.detach()).requires_grad_()
        penalty = defence.penalty(Batch(batch.x, batch.y, z))
        (gradient,) = torch.autograd.grad(penalty, z)
        assert penalty.isfinite() and gradient.isfinite().all()
        defence.observe(Batch(batch.x, batch.y, z.detach()))
        assert all(tensor.isfinite().all() for tensor in defence.state_dict().values())
    before = defence.penalty(batch).item()
    assert taught(defence, batch).penalty(batch) > before + 0.1


def test_it_learns_as_often_as_asked_and_counts():
    batch, defence = coarse_batch(), made(ARL(steps=3, **SMALL))
    taught(defence, batch, times=2)
    assert defence.adversary.steps.item() == 6


def test_saved_in_the_middle_it_goes_on_to_the_same_bits():
    batch, defence = coarse_batch(), made(ARL(**SMALL))
    taught(defence, batch, times=5)
    again = made(ARL(**SMALL))
    again.load_state_dict(state(defence))
    assert same(state(taught(again, batch, times=5)), state(taught(defence, batch, times=5)))


def test_a_watched_step_tells_how_the_adversary_fares():
    batch, defence = coarse_batch(), made(ARL(metric="mse", **SMALL))
    defence.penalty(batch)
    assert batch.readings == {}
    watched = replace(batch, watched=True)
    defence.penalty(watched)
    assert watched.readings["adversary_mse"].item() == pytest.approx(
        defence.adversary(batch.z, batch.x, F.mse_loss).item()
    )


def test_it_says_when_it_asked_for_nothing_most_of_the_time():
    batch, defence = coarse_batch(), ARL(threshold=2.0, **SMALL)
    assert defence.flags == []
    made(defence).penalty(batch)
    assert "100%" in defence.flags[0] and "ssim 2" in defence.flags[0]
    busy = made(ARL(threshold=-1.0, **SMALL))
    busy.penalty(batch)
    assert busy.flags == []


@pytest.mark.parametrize("options", [{"steps": 0}, {"channels": 0}, {"blocks": -1}, {"lr": 0.0}])
def test_an_adversary_that_could_not_learn_is_refused(options):
    with pytest.raises(ValueError, match="no adversary that learns"):
        create_defence("arl", **options)


def test_an_unknown_metric_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'ssim'"):
        create_defence("arl", metric="sim")
