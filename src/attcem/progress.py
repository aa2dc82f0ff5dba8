"""Progress on a terminal as a live bar, elsewhere as plain lines, so that logs stay readable."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich import progress as rich
from rich.console import Console
from rich.text import Text

from attcem.escaping import in_terminal

console = Console(stderr=True, highlight=False)


class Rate(rich.ProgressColumn):
    """Units per second, where one step is worth `unit_size` units (images per batch, say)."""

    def render(self, task: rich.Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed * task.fields['unit_size']:,.0f} {task.fields['unit']}/s")


@contextmanager
def bar(
    title: str, total: int | None, *, unit: str = "images", unit_size: float = 1, shown: bool = True
) -> Iterator[Callable[..., None]]:
    """Yield `show(done, **figures)`; the figures stand beside the bar with rate and time left."""
    in_bytes = unit == "bytes"
    columns = [
        rich.TextColumn("{task.description}", markup=False),
        rich.BarColumn(bar_width=24),
        rich.TextColumn("{task.fields[figures]}"),
        rich.DownloadColumn() if in_bytes else rich.MofNCompleteColumn(),
        rich.TransferSpeedColumn() if in_bytes else Rate(),
        rich.TimeRemainingColumn(),
    ]
    with rich.Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as bars:
        task = bars.add_task(in_terminal(title), total=total, unit=unit, unit_size=unit_size, figures="")

        def show(done: int, **figures: float) -> None:
            text = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
            bars.update(task, completed=done, figures=text)

        yield show


def say(text: str, *, shown: bool = True) -> None:
    if shown:
        console.print(Text(in_terminal(text)), soft_wrap=True)
