"""`python -m tests.side_by_side.helper RUN SETTINGS N`: a real helper, with attacks of seconds."""

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from attcem.attacks import ATTACKS, SUITES, Attack, Reconstruction, Suite
from attcem.attacks.decoder import Decoder
from attcem.attacks.variant import Repeated
from attcem.config import AuditConfig
from attcem.progress import say
from attcem.side_by_side import help_out


@dataclass(frozen=True)
class Grey(Attack):
    """Half-tone, after what is asked of it: nothing, to take its process down, or to talk for ever."""

    does: str

    def __call__(self, view, *, seed=0, progress=False):
        if "HELPER" in os.environ and self.does == "dies":
            os._exit(9)
        while self.does == "talks":
            say("still here")
            time.sleep(0.05)
        return Reconstruction(torch.full((len(view.targets), *view.public.shape), 0.5))

    def brief(self):
        return self


BRIEF: dict[str, Attack] = {
    "decoder": Decoder(16, 1).brief(),
    "optimise_adam": ATTACKS["optimise_adam"].brief(),
    "another": Decoder(8, 1).brief(),
    "noisy": Repeated(Decoder(8, 1), 4).brief(),
}
FATAL: dict[str, Attack] = {"grey": Grey("nothing"), "fatal": Grey("dies"), "another": BRIEF["another"]}
FREE: dict[str, Attack] = {name: Grey(f"nothing {name}") for name in ("black", "grey", "white")}
ONE_BLIND: dict[str, Attack] = FREE | {"substitute": ATTACKS["substitute"].brief()}
TALKING: dict[str, Attack] = {"talking": Grey("talks")}

if __name__ == "__main__":
    from tests.side_by_side import helper  # the same classes that the audit compares with, not this __main__'s

    os.environ["HELPER"] = "1"
    torch.set_num_threads(1)
    SUITES["smoke"] = Suite("smoke", 1, getattr(helper, os.environ["SUITE"]), seen=4_000)
    help_out(Path(sys.argv[1]), AuditConfig(**json.loads(sys.argv[2])), int(sys.argv[3]), sys.argv[4])
