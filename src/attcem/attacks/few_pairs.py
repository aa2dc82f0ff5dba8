"""An attacker who owns only a few public images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from attcem.attacks.variant import Variant
from attcem.types import View


@dataclass(frozen=True)
class FewPairs(Variant):
    """Owns only so many of the public images, and so learns from as many pairs."""

    pairs: int

    @property
    def condition(self) -> str:
        """How many."""
        return f"With only {self.pairs:,} public images"

    def change(self, view: View, seed: int) -> View:
        """The same few for every seed."""
        some = torch.randperm(len(view.public), generator=torch.Generator().manual_seed(self.pairs))
        page = view.workbook.page((FewPairs, self.pairs), same_images=False)
        return replace(view, public=view.public[some[: self.pairs]], workbook=page)
