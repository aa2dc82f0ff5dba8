"""Training the split network under a defence."""

from attcem.train.averaging import restore_guards
from attcem.train.checkpoint import State, read_state, read_tensors, unpack_modules
from attcem.train.clients import fit_clients
from attcem.train.honesty import caveat
from attcem.train.loop import fit
from attcem.train.prediction import evaluate
from attcem.train.schedule import RECIPES

__all__ = [
    "RECIPES",
    "State",
    "caveat",
    "evaluate",
    "fit",
    "fit_clients",
    "read_state",
    "read_tensors",
    "restore_guards",
    "unpack_modules",
]
