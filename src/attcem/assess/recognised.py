"""Are the people on reconstructions recognised from other photos of them?"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from attcem.assess.judge import Judge, evaluator_for
from attcem.assess.suite import beside_chance
from attcem.data import Data
from attcem.maths.recognition import blind, recognition
from attcem.types import Embed, People


def people_of(data: Data, embed: Embed | None, seen: int, progress: bool, device: torch.device) -> People | None:
    """The device's people, from their private photos; nothing where the attacker's people are not strangers to them."""
    if data.strangers is None:
        if embed is not None:
            raise ValueError("embed compares people that the attacker does not know: load data with strangers=True")
        return None
    if embed is None:
        embed = evaluator_for(replace(data, private=data.strangers), seen, progress, device).embed
    return People.of(data.private, data.classes, embed)


def recognised(judge: Judge, attacks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """How often people are recognised on what the best attack of all images made, and on the photos themselves."""
    if judge.people is None:
        return {}
    who, chance = judge.truth.y, blind(judge.truth.y)
    photos = recognition(judge.people.likeness(judge.people.embed(judge.pixels)), who)
    whole = [name for name in attacks if not judge.scores[name]["person_top1"].isnan().any()]
    best = max(whole, key=lambda name: judge.scores[name]["person_top1"].mean().item())
    found = {"identity_on_pictures": judge.scores[best], "identity_on_photos": photos}
    told = {name: {one: beside_chance(found[name][one], chance[one], who) for one in chance} for name in found}
    return told | {"identity_on_pictures": told["identity_on_pictures"] | {"attack": best}}
