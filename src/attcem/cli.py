"""The command line: parses, calls, and turns errors into a line and an exit code. Help needs no torch."""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from attcem import __doc__ as ABOUT
from attcem import __version__, commands
from attcem.configfile import UsageError, experiment_parser
from attcem.configfile.messages import explain
from attcem.options import OPTIONS
from attcem.terminal import allow_closed_pipe, tell

COMMANDS = {
    "demo": commands.demo,
    "list": commands.show_list,
    "run": commands.run,
    "sweep": commands.sweep,
    "tune": commands.tune,
    "cut": commands.cut,
    "audit": commands.audit,
    "export": commands.export,
    "explain": commands.explain,
    "report": commands.report,
    "figures": commands.figures,
    "slides": commands.slides,
    "compare": commands.compare,
    "table": commands.table,
    "check": commands.check,
    "send": commands.send,
    "serve": commands.serve,
    "page": commands.page,
}
SETTABLE = (commands.run, commands.sweep, commands.tune, commands.cut)  # commands that take any setting as --key value


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors name what was probably meant."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(explain(message, list(self._option_string_actions)))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever, but files may also be named after an option, which argparse takes for the end of them."""
        found, rest = super().parse_known_args(args, namespace)
        for action in self._get_positional_actions():
            if action.nargs == "*":
                getattr(found, action.dest).extend(word for word in rest if not word.startswith("-"))
                rest = [word for word in rest if word.startswith("-")]
        return found, rest

    def format_help(self) -> str:
        if self.get_default("call") is not commands.run:
            return super().format_help()
        self.usage = "attcem run [FILE.yaml | PRESET | RUN-FOLDER] [options] [--key value ...]"
        settings = experiment_parser().format_help()
        return f"{super().format_help()}\nAny setting below overrides the file's:\n\n{settings}"


def build_parser() -> Parser:
    parser = Parser(prog="attcem", description=ABOUT, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"attcem {__version__}")
    known = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, call in COMMANDS.items():
        add_command(known, name, call)
    of_data = known.add_parser("data", help="Data sets.").add_subparsers(metavar="get", required=True)
    add_command(of_data, "get", commands.get)
    return parser


def add_command(known: argparse._SubParsersAction, name: str, call: Callable) -> None:
    """A command with its options; its docstring is its help."""
    made = known.add_parser(name, help=call.__doc__, description=call.__doc__, allow_abbrev=False)
    made.set_defaults(call=call, parser=made)
    for names, settings in OPTIONS[name]:
        made.add_argument(*names, **settings)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 failed, 2 wrong usage."""
    try:
        with allow_closed_pipe():
            parser = build_parser()
            options, rest = parser.parse_known_args(arguments, argparse.Namespace(call=None, parser=parser))
            if rest and options.call not in SETTABLE:
                options.parser.error(f"unrecognized arguments: {rest[0]}")
            if options.call is None:
                parser.print_help()
                return 2
            options.settings = rest
            options.call(options)
    except (ValueError, OSError) as error:
        tell(f"attcem: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt as interrupt:
        tell("", f"attcem: interrupted{': ' if interrupt.args else ''}{' '.join(interrupt.args)}", file=sys.stderr)
        return 1
    return 0
