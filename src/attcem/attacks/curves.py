"""How the error falls with what the attacker has: sends of every image, public images."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attcem.attacks.base import Attack
from attcem.attacks.decoder import Decoder, sizes
from attcem.attacks.few_pairs import FewPairs
from attcem.attacks.repeated import Repeated
from attcem.attacks.variant import Variant


def curves(suite: Mapping[str, Attack], mean: Callable[[str], float]) -> dict[str, dict[str, float]]:
    """MSE against how often an image was sent, and against how many public images the attacker owns."""
    repeated = {name: (str(one.times), one) for name, one in suite.items() if isinstance(one, Repeated)}
    few = {name: (f"{one.pairs}", one) for name, one in suite.items() if isinstance(one, FewPairs)}
    found = {"repeats": curve(suite, repeated, "1", mean), "pairs": curve(suite, few, "all", mean)}
    return {option: points for option, points in found.items() if len(points) > 1}


def curve(
    suite: Mapping[str, Attack], variants: Mapping[str, tuple[str, Variant]], usual: str, mean: Callable[[str], float]
) -> dict[str, float]:
    """One point for each variant, and one for the decoder of their size that is none."""
    inner = [one.attack for _, one in variants.values()]
    alike = {(one.channels, one.blocks) for one in inner if isinstance(one, Decoder)}
    plain = {name: usual for name, one in sizes(suite).items() if (one.channels, one.blocks) in alike}
    points = plain | {name: point for name, (point, _) in variants.items()}
    return {points[name]: mean(name) for name in suite if name in points}
