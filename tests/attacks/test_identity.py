"""Who is on the picture: the audit's own reconstructions and the direct attack, from other photos."""

from dataclasses import replace

import pytest
import torch

import attcem
from attcem.attacks import PROBES, SUITES, Suite
from attcem.attacks.decoder import Decoder
from attcem.attacks.identity import Identity
from attcem.defences import Noise, Undefended
from attcem.types import Images, People
from tests.attacks.asking import coarse, view_with_gallery
from tests.attacks.conftest import halve
from tests.probes import Blank, Pixels, split_with


@pytest.fixture(scope="module")
def strangers(fashion):
    """Kinds of clothes stand for people: three are the device's, three the attacker's."""
    owners = {"private": (0, 1, 7), "test": (0, 1, 7), "public": (2, 5, 8), "strangers": (3, 4, 6, 9)}
    most = {"private": 60, "test": 60, "public": 200, "strangers": 100}
    whole = {"private": fashion.private, "test": fashion.test, "public": fashion.public, "strangers": fashion.private}
    parts = {
        part: halve(images[torch.isin(images.y, torch.tensor(owners[part]))][: most[part]])
        for part, images in whole.items()
    }
    return replace(fashion, **parts)


def identity_of(guard, data, **options):
    short = Suite(
        "short", 1, {"decoder_small": Decoder(16, 1, cycle=20, doublings=0)}, {"identity": PROBES["identity"]}
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SUITES, "short", replace(short, seen=500))
        model = split_with(Pixels(), data.shape, data.classes)
        return attcem.audit(model, guard, data, suite="short", images=60, progress=False, **options)


def test_people_are_recognised_from_other_photos_and_noise_drowns_them(strangers):
    told = identity_of(Undefended(), strangers, embed=coarse)
    assert told.probes["identity_on_pictures"]["attack"] == "decoder_small"
    for way in ("identity", "identity_on_pictures", "identity_on_photos"):
        found = told.probes[way]["person_top1"]
        assert found["chance"] + 0.05 < found["low"] < found["mean"] <= found["high"], way
    assert told.worst.more["person_top1"] == told.attacks["decoder_small"].more["person_top1"] > 0.8
    hidden = identity_of(Blank(), strangers, embed=coarse)
    for way in ("identity", "identity_on_pictures"):
        found = hidden.probes[way]["person_top1"]
        assert found["low"] < found["chance"] + 1e-6 and found["mean"] < 0.6, way
    assert hidden.probes["identity_on_photos"] == told.probes["identity_on_photos"]


def test_without_an_embedding_the_judge_learns_one_from_the_strangers(strangers):
    told = identity_of(Noise(0.01), strangers)
    found = told.probes["identity_on_photos"]["person_top1"]
    assert found["low"] > found["chance"]


def test_data_whose_people_the_attacker_knows_has_no_identity(strangers):
    few_alike = replace(strangers, strangers=None)
    assert not any("identity" in name for name in identity_of(Undefended(), few_alike).probes)
    with pytest.raises(ValueError, match="strangers=True"):
        identity_of(Undefended(), few_alike, embed=coarse)


def test_an_embedding_is_compared_with_photos_only(many_thumbnails):
    photos = Images(many_thumbnails.public.x[:40], many_thumbnails.public.y[:40] % 3)
    people = People.of(photos, 5, coarse)
    by_hand = torch.stack([coarse(photos[photos.y == who].pixels()).mean(0) for who in range(3)])
    torch.testing.assert_close(people.templates[:3], by_hand)
    assert people.present.tolist() == [True] * 3 + [False] * 2
    likeness = people.likeness(by_hand)
    assert likeness[:, :3].argmax(1).tolist() == [0, 1, 2] and (likeness[:, 3:] == -torch.inf).all()


def test_it_needs_other_people_to_learn_from(many_thumbnails):
    view, _ = view_with_gallery(Pixels(), many_thumbnails, images=5)
    with pytest.raises(ValueError, match="strangers=True"):
        Identity()(replace(view, people=None))
