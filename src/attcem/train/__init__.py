"""Training the split network under a defence."""

from attcem.train.agreement import check_arguments, check_guard, check_network, in_evaluation
from attcem.train.averaging import restore_guards
from attcem.train.checkpoint import State, best_of, read_state, read_tensors, refuse_other_draw
from attcem.train.distributed import is_first, leave_team, team_size
from attcem.train.federated import fit_clients, refuse_processes
from attcem.train.honesty import honesty_flags
from attcem.train.loop import fit
from attcem.train.packing import under, unpack_modules
from attcem.train.prediction import evaluate
from attcem.train.schedule import RECIPES
from attcem.train.server import HONEST, Server, gradient_flags

__all__ = [
    "HONEST",
    "RECIPES",
    "Server",
    "State",
    "best_of",
    "check_arguments",
    "check_guard",
    "check_network",
    "evaluate",
    "fit",
    "fit_clients",
    "gradient_flags",
    "honesty_flags",
    "in_evaluation",
    "is_first",
    "leave_team",
    "read_state",
    "read_tensors",
    "refuse_other_draw",
    "refuse_processes",
    "restore_guards",
    "team_size",
    "under",
    "unpack_modules",
]
