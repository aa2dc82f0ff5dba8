"""Who trains together: one process by itself, or several that share every batch and hold the same weights."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from torch import Tensor, nn

from attcem.workplace import working_in


class Team:
    """One process by itself; `distributed.Processes` gives the same words their meaning for several.

    A network works apart, each process on its own rows of the batch. What it makes is put together again at once, so
    that defences, losses and figures are computed everywhere, from the whole batch and with the same draws.
    """

    rank: int = 0
    size: int = 1
    rows: slice = slice(None)  # of the batch that a network is working on: those of this process
    total: int = 0  # how many rows that batch has

    @property
    def first(self) -> bool:
        """Whether it is this one that writes and speaks."""
        return self.rank == 0

    def lock_folder(self, out: str | Path | None) -> AbstractContextManager[None]:
        """While it lasts, no other process trains in this folder; of a team's processes, the first sees to that."""
        return nullcontext() if out is None or not self.first else working_in(Path(out))

    def run_rows(self, network: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """What a network makes of a whole batch."""
        return network(x)

    def sum(self, value: Tensor) -> Tensor:
        """The sum over all processes of what each of them has."""
        return value

    def whole_batch(self, model: nn.Module) -> AbstractContextManager[None]:
        """While it lasts, layers that look across samples look across the whole batch."""
        return nullcontext()

    def sum_gradients(self, split: Iterable[nn.Parameter], alike: Iterable[nn.Parameter]) -> None:
        """Make gradients whole: of weights that worked apart, and of those that did the same everywhere."""

    def check(self, facts: Callable[[], Mapping[str, object]]) -> None:
        """Refuse to start where processes were given different things."""

    def copy_first(self, epoch: int, tensors: Mapping[str, Tensor]) -> None:
        """Take over the first process's numbers, so that not even rounding drives processes apart."""


ALONE = Team()
