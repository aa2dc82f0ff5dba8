"""Were the attacks themselves adequate? A flag is a reason to doubt the numbers."""

from __future__ import annotations

from collections.abc import Mapping

from attcem.attacks.base import Reconstruction
from attcem.types import Scores


def adequacy_flags(
    attacks: Mapping[str, Reconstruction],
    *,
    worst: Scores,
    mean_image: Scores,
    accuracy: float,
    classes: int,
    undefended: bool,
) -> list[str]:
    """Sentences for the top of the report; none if there is nothing to doubt."""
    doubtful: dict[str, list[str]] = {}
    for name, attack in attacks.items():
        for warning in attack.warnings:
            doubtful.setdefault(warning, []).append(name)
    flags = [f"{', '.join(names)}: {warning}" for warning, names in doubtful.items()]
    if worst.mse > 1.02 * mean_image.mse:
        flags.append(
            f"the attacks (MSE {worst.mse:.4f}) do worse than the mean image ({mean_image.mse:.4f}): they failed"
        )
    elif undefended and worst.mse > 0.5 * mean_image.mse:
        flags.append(f"the attacks barely break the undefended network (MSE {worst.mse:.4f}): too weak to judge by")
    if accuracy < 2 / classes:
        flags.append(f"accuracy {accuracy:.3f} is near chance ({1 / classes:.3f}): the network does not serve its task")
    return flags
