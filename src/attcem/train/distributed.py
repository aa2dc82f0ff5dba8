"""Several processes that train as one: started by torchrun, each with a share of every batch."""

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn

from attcem.device import find_device
from attcem.train.collectives import Own, Sum, Together, rows_of, whole_batch
from attcem.train.team import ALONE, Team

PATIENCE = timedelta(minutes=10)  # how long a process waits for the others before it gives up: one of them may be dead

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun tells every process that it starts

_over = False  # whether the team of this process has done its work: what is trained afterwards is trained alone


def team_size() -> int:
    """How many processes there are, met or not."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size()
    launched = not _over and all(name in os.environ for name in LAUNCHED)
    return int(os.environ["WORLD_SIZE"]) if launched else 1


def is_first() -> bool:
    """Whether this is the process that writes and speaks."""
    if team_size() == 1:
        return True
    return (dist.get_rank() if dist.is_initialized() else int(os.environ["RANK"])) == 0


def join(device: str) -> Team:
    """Meet the other processes that torchrun has started, if any."""
    if team_size() == 1:
        return ALONE
    if ":" in device:
        raise ValueError(f"device {device!r} is one place for {team_size()} processes: use cuda, or auto, or cpu")
    kind = find_device(device).type
    if kind == "cuda":
        card, cards = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if card >= cards:
            raise ValueError(f"this machine has {cards} GPUs: start torchrun --nproc-per-node {cards}, or device cpu")
        torch.cuda.set_device(card)
    if not dist.is_initialized():
        dist.init_process_group(dist.get_default_backend_for_device(kind), timeout=PATIENCE)
    return Processes(torch.device(kind))


def leave_team() -> None:
    """End the team after its work: the first process goes on alone, the others end here."""
    global _over
    if team_size() == 1:
        return
    stays = is_first()
    if dist.is_initialized():
        dist.barrier()  # nobody leaves while another still waits for its numbers
        dist.destroy_process_group()
    if not stays:
        sys.exit()
    _over = True


class Processes(Team):
    """One of several processes; every method is called by all of them at the same moment."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.rank, self.size = device, dist.get_rank(), dist.get_world_size()

    def run_rows(self, network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """What a network makes of a whole batch, each process seeing its rows; of a few rows, all see all."""
        self.rows, self.total = slice(0, len(x)), len(x)
        if len(x) < self.size:
            return network(x)
        self.rows = rows_of(self.rank, self.size, len(x))
        return Together.apply(network(Own.apply(x)), len(x))

    def sum(self, value: Tensor) -> Tensor:
        return Sum.apply(value)

    def whole_batch(self, model: nn.Module) -> AbstractContextManager[None]:
        return whole_batch(model, self)

    @torch.no_grad()
    def sum_gradients(self, split: Iterable[nn.Parameter], alike: Iterable[nn.Parameter]) -> None:
        """Add up gradients of weights that worked on different rows; average those that should be the same anyway."""
        found = [
            (p.grad, share) for ps, share in ((split, 1), (alike, 1 / self.size)) for p in ps if p.grad is not None
        ]
        if not found:
            return
        flat = torch.cat([gradient.flatten() * share for gradient, share in found])
        dist.all_reduce(flat)
        for (gradient, _), whole in zip(found, flat.split([gradient.numel() for gradient, _ in found]), strict=True):
            gradient.copy_(whole.view_as(gradient))

    def check(self, facts: Callable[[], Mapping[str, object]]) -> None:
        mine = {name: str(fact) for name, fact in facts().items()}
        everyone: list[dict[str, str]] = [{} for _ in range(self.size)]
        dist.all_gather_object(everyone, mine)
        for rank, theirs in enumerate(everyone):
            different = [name for name in mine if theirs.get(name) != everyone[0].get(name)]
            if different:
                raise ValueError(
                    f"process {rank} has another {' and another '.join(different)} than process 0: all processes must "
                    "have the same settings, the same data and the same folder, and a network may draw random numbers "
                    "by nn.Dropout only"
                )

    @torch.no_grad()
    def copy_first(self, epoch: int, tensors: Mapping[str, Tensor]) -> None:
        """Take over the first process's numbers; all must have drawn the same random ones so far, as one more tells."""
        drawn = torch.rand((), device=self.device, dtype=torch.float64).item()
        self.check(lambda: {"epoch": epoch, "random number": drawn})
        for name in sorted(tensors):  # a checkpoint gives them back in any order
            theirs = tensors[name].contiguous()
            dist.broadcast(theirs, 0)
            tensors[name].copy_(theirs)
