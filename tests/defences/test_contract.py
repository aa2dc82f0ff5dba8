"""Every entry of DEFENCES keeps the same contract."""

import pytest
import torch

from attcem.defences import DEFENCES, NOISE, Guard, Noise, Stage, build_defence, create_defence, describe
from attcem.maths import DISTRIBUTIONS
from attcem.types import Batch
from tests.probes import Blank, Scaled, Shrink, weighted_penalty

LATENTS = [(8, 7, 7), (9, 16), (32,)]
"""A map, tokens, a vector."""


def batch_of(latent: tuple[int, ...], n: int = 24) -> Batch:
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(n, *latent, generator=generator).requires_grad_()
    return Batch(x=torch.rand(n, 1, 28, 28, generator=generator), y=torch.arange(n) % 4, z=z)


@pytest.mark.parametrize("latent", LATENTS, ids=str)
@pytest.mark.parametrize("name", DEFENCES)
class TestEveryDefence:
    def made(self, name, latent):
        defence = create_defence(name)
        defence.setup(latent=latent, classes=4, sigma=max(defence.sigma, 0.1))
        return defence

    def test_release_keeps_shape_type_and_gradient(self, name, latent):
        z = batch_of(latent).z
        released = self.made(name, latent).release(z)
        assert released.shape == z.shape and released.dtype == z.dtype
        assert released.isfinite().all()
        released.sum().backward()
        assert z.grad is not None and z.grad.isfinite().all()

    def test_release_does_not_change_its_input(self, name, latent):
        z = batch_of(latent).z.detach()
        before = z.clone()
        self.made(name, latent).release(z)
        assert torch.equal(z, before)

    def test_release_is_the_same_law_in_training_and_evaluation(self, name, latent):
        defence, z = self.made(name, latent), batch_of(latent).z.detach()
        torch.manual_seed(3)
        training = defence.train().release(z)
        torch.manual_seed(3)
        assert torch.equal(training, defence.eval().release(z))

    def test_release_draws_nothing_but_what_it_declares(self, name, latent):
        guard, z = Guard(self.made(name, latent)), batch_of(latent).z.detach()
        torch.manual_seed(3)
        given = {link: DISTRIBUTIONS[law](z) for link, law in guard.distributions.items()}
        before = torch.random.get_rng_state()
        released = guard.release(z, given)
        assert torch.equal(torch.random.get_rng_state(), before)
        torch.manual_seed(3)
        assert torch.equal(guard.release(z), released)
        others = {link: torch.full_like(z, 0.9) for link in given}
        assert not given or not torch.equal(guard.release(z, others), released)

    def test_penalty_is_a_finite_scalar_and_observe_accepts_the_batch(self, name, latent):
        defence, batch = self.made(name, latent), batch_of(latent)
        penalty = defence.penalty(batch)
        assert penalty.shape == () and penalty.isfinite()
        defence.observe(Batch(batch.x, batch.y, batch.z.detach()))

    def test_description_rebuilds_it(self, name, latent):
        defence = create_defence(name)
        guard = Noise(0.1) + defence if NOISE in defence.needs else Guard(defence)
        again = build_defence(describe(guard))
        assert describe(again) == describe(guard)
        assert [type(link) for link in again.links] == [type(link) for link in guard.links if link.kind != "none"]

    def test_state_survives_saving(self, name, latent):
        defence, again = self.made(name, latent), self.made(name, latent)
        again.load_state_dict(defence.state_dict())
        torch.manual_seed(1)
        first = defence.eval().release(batch_of(latent).z)
        torch.manual_seed(1)
        assert torch.equal(again.eval().release(batch_of(latent).z), first)

    def test_first_docstring_line_is_a_sentence(self, name, latent):
        assert DEFENCES[name].__doc__ and DEFENCES[name].__doc__.splitlines()[0][-1] in ".:)"

    def test_unknown_option_names_the_nearest(self, name, latent):
        with pytest.raises(ValueError, match="no option"):
            create_defence(name, sigmaa=1)


def test_noise_has_the_standard_deviation_it_promises_and_is_fresh():
    z = torch.zeros(4, 50_000)
    noise = Noise(sigma=0.25)
    first, second = noise.release(z), noise.release(z)
    assert first.std().item() == pytest.approx(0.25, rel=0.02)
    assert abs((first * second).mean().item()) < 0.002


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="zero or positive"):
        Noise(sigma=-1)


def test_unknown_defence_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'noise'"):
        create_defence("nose")


def test_a_chain_releases_in_the_order_of_the_maths_whatever_order_it_is_written_in():
    class Double(Blank):
        stage = Stage.PRUNING

        def release(self, z):
            return 2 * z

    class AddOne(Blank):
        stage = Stage.NOISE

        def release(self, z):
            return z + 1

    z = torch.ones(1, 3)
    for chain in (Double() + AddOne(), AddOne() + Double()):
        assert torch.equal(chain.release(z), torch.full((1, 3), 4.0))


def test_a_chain_is_flat_adds_noise_variances_and_weighs_penalties():
    chain = Noise(0.3) + Noise(0.4) + (Shrink(lam=2) + Shrink(lam=0))
    assert [type(link).__name__ for link in chain.links] == ["Noise", "Noise", "Shrink", "Shrink"]
    assert chain.sigma == pytest.approx(0.5)
    batch = batch_of((5,))
    torch.testing.assert_close(weighted_penalty(chain, batch), 2 * batch.z.square().mean())
    assert [link.penalises for link in chain.links] == [False, False, True, False]


def test_noise_before_a_clip_is_not_added_to_the_noise_after_it():
    clipped, plain = create_defence("local_dp", epsilon=8.0), create_defence("local_dp", epsilon=8.0, clip=None)
    assert (Noise(0.1) + clipped).sigma == pytest.approx(clipped.sigma)
    assert (Noise(9.0) + clipped).sigma == pytest.approx(9.0)
    assert (Noise(9.0) + plain).sigma == pytest.approx((81 + plain.sigma**2) ** 0.5)


def test_a_chain_sets_up_and_saves_every_link():
    chain = Guard(Noise(0.1), Scaled())
    chain.setup(latent=(5,), classes=3, sigma=chain.sigma)
    assert [tuple(p.shape) for p in chain.parameters()] == [(5,)]


def test_an_empty_configuration_is_undefended():
    z = torch.rand(3, 4)
    assert torch.equal(build_defence({}).release(z), z)
    assert describe(build_defence({"noise": {"sigma": 0.5}})) == [{"noise": {"sigma": 0.5}}]
    assert describe(build_defence({"none": {}})) == []
