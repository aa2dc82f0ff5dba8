"""Wrappers that change what an attacker owns or sees, around any attack."""

from dataclasses import dataclass, replace

import pytest
import torch

from attcem.attacks import ATTACKS, Attack, Reconstruction
from attcem.attacks.decoder import Decoder
from attcem.attacks.variant import FewPairs, Repeated, ShiftedPublic, Variant
from attcem.defences import Noise
from attcem.threat import build_view
from attcem.types import Workbook
from tests.probes import Coarse, split_with

BRIEF = Decoder(8, 1, cycle=4, doublings=0, batch=16)
DEEPER = Decoder(8, 2, cycle=4, doublings=0, batch=16, start=BRIEF)
VARIANTS = {"repeated": Repeated(BRIEF, 4), "few pairs": FewPairs(BRIEF, 50), "shifted": ShiftedPublic(BRIEF)}
every_variant = pytest.mark.parametrize("name", VARIANTS)


@dataclass(frozen=True)
class Spy(Attack):
    """Shows the view that it was given."""

    def __call__(self, view, *, seed=0, progress=False):
        Spy.seen = view
        return Reconstruction(torch.zeros(len(view.targets), *view.public.shape))


@pytest.fixture(scope="module")
def view(pictures):
    return build_view(split_with(Coarse()), Noise(0.5), pictures, images=60, threat="white_box")[0]


def seen_by(variant: Variant, view):
    replace(variant, attack=Spy())(view)
    return Spy.seen


def test_few_pairs_are_so_many_public_images_the_same_for_every_seed(view):
    some, again = (FewPairs(Spy(), 50).change(view, seed).public.x for seed in (0, 1))
    assert len(some) == 50 and torch.equal(some, again)
    assert all((image == view.public.x).flatten(1).all(1).any() for image in some)


def test_shifted_public_images_are_of_the_first_half_of_the_classes(view):
    public = seen_by(VARIANTS["shifted"], view).public
    assert public.y.unique().tolist() == [0, 1, 2, 3, 4]
    assert len(public) == int((view.public.y < 5).sum())


def test_repeated_sends_leave_less_noise_in_all_that_the_attacker_sees(view):
    seen, x = seen_by(VARIANTS["repeated"], view), view.public[:100].pixels()
    recording, index, z = seen.oracle.record([x]), torch.arange(100), view.device.encode(x)
    ways = [seen.oracle(x) - z, recording(index) - z, seen.device.release(z) - z, seen.targets - seen.resend(60)]
    expected = [0.25, 0.25, 0.25, 0.25 * 2**0.5]
    for noise, deviation in zip(ways, expected, strict=True):
        assert noise.std().item() == pytest.approx(deviation, rel=0.1)
    assert (seen.oracle(x, 4) - z).std().item() == pytest.approx(0.125, rel=0.1)


@every_variant
def test_what_it_learns_stays_on_its_own_page(name, view):
    view = replace(view, workbook=Workbook())
    plain, other = BRIEF(view), VARIANTS[name](view)
    assert not torch.equal(plain.images, other.images)
    assert torch.equal(other.images, VARIANTS[name](replace(view, workbook=Workbook())).images), "whoever came first"
    assert list(view.workbook.models) == [(BRIEF, 0)] and len(view.workbook.pages) == 1


def test_who_owns_the_same_images_shares_the_recordings_and_who_owns_others_does_not(view):
    for name, shares in (("repeated", True), ("few pairs", False), ("shifted", False)):
        seen, pairs = VARIANTS[name].change(view, 0), BRIEF.trained(view).pairs
        assert (BRIEF.trained(seen).pairs.recorded is pairs.recorded) == shares
    nested = FewPairs(BRIEF, 50).change(Repeated(BRIEF, 4).change(view, 0), 0)
    assert len(BRIEF.trained(nested).pairs.images) == 45


@every_variant
def test_it_goes_on_from_what_was_kept_and_builds_on_the_same_variant(name, view, monkeypatch):
    start, grown = VARIANTS[name], replace(VARIANTS[name], attack=DEEPER)
    assert grown.builds_on == start and start.builds_on == start
    expected, again = grown(view), replace(view, workbook=Workbook())
    start.recall(again, start(view))
    learn = Decoder.train
    monkeypatch.setattr(
        Decoder, "train", lambda self, *rest: pytest.fail("again") if self == BRIEF else learn(self, *rest)
    )
    assert torch.equal(grown(again).images, expected.images)


@every_variant
def test_it_wraps_any_attack(name, view):
    attack = replace(VARIANTS[name], attack=replace(ATTACKS["optimise_adam"].brief(), steps=2, images=3))
    assert attack.needs == ATTACKS["optimise_adam"].needs and attack.effort == attack.attack.effort
    assert attack(view).images.shape == (3, 1, 28, 28)
    assert replace(VARIANTS[name], attack=Spy()).about.endswith(": shows the view that it was given.")


def test_how_many_sends_of_an_image_it_takes():
    assert [VARIANTS[name].observations for name in VARIANTS] == [4, 1, 1]
    assert FewPairs(Repeated(BRIEF, 4), 10).observations == 4 and Repeated(Repeated(BRIEF, 4), 2).observations == 8
    with pytest.raises(ValueError, match="give 2 or more"):
        Repeated(BRIEF, 1)
