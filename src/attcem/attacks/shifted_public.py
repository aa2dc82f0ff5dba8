"""An attacker whose public images are unlike those it attacks."""

from __future__ import annotations

from dataclasses import dataclass, replace

from attcem.attacks.variant import Variant
from attcem.types import View


@dataclass(frozen=True)
class ShiftedPublic(Variant):
    """Owns public images of the first half of the classes only."""

    @property
    def condition(self) -> str:
        """Which images it owns."""
        return "With public images of half of the classes"

    def change(self, view: View, seed: int) -> View:
        """Without the images of the other classes."""
        public = view.public[view.public.y < (int(view.public.y.max()) + 2) // 2]
        return replace(view, public=public, workbook=view.workbook.page(ShiftedPublic, same_images=False))
