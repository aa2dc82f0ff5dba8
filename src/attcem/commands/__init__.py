"""What each command does: it takes its options, calls a room and prints."""

from attcem.commands.data import get
from attcem.commands.results import check, compare, explain, figures, report, slides, table
from attcem.commands.shipping import export, page, send, serve
from attcem.commands.training import audit, cut, demo, run, show_list, sweep, tune

__all__ = [
    "audit",
    "check",
    "compare",
    "cut",
    "demo",
    "explain",
    "export",
    "figures",
    "get",
    "page",
    "report",
    "run",
    "send",
    "serve",
    "show_list",
    "slides",
    "sweep",
    "table",
    "tune",
]
