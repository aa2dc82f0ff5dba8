"""Defence chain and crossing: single options set on the command line, every option of its declared type."""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from attcem.config import as_mapping
from attcem.configfile.messages import MODE, Parser, UsageError
from attcem.defences import DEFENCES, option_types
from attcem.links import Link, number, read_links
from attcem.naming import check_options, nearest
from attcem.reading.settings import parse_yaml


def take_options(arguments: Sequence[str], prefix: str) -> tuple[list[str], dict[str, Any]]:
    """The arguments without those that set one option under a prefix, and these: "noise.sigma" → its value.

    The parser would take each of them for a whole new mapping, and forget the options that were given before.
    """
    rest, options, waiting = [], {}, list(arguments)
    while waiting:
        argument = waiting.pop(0)
        if not argument.startswith(prefix):
            rest.append(argument)
            continue
        key, given, value = argument.removeprefix(prefix).partition("=")
        if not given and (not waiting or waiting[0].startswith("--")):
            raise UsageError(f"{argument} needs a value, as in {argument} 0.1")
        text = value if given else waiting.pop(0)
        try:
            options[key] = parse_yaml(text)
        except ValueError:
            name = f"{prefix}{key}".removeprefix("--")
            raise UsageError(f"{name} cannot be {text!r}: give a number, a word or a {{mapping: 1}}") from None
    return rest, options


def override_crossing(written: dict[str, Any] | str | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The crossing with single options replaced, the others as they were; another form takes its place."""
    forms = {key.partition(".")[0] for key in options}
    if len(forms) > 1:
        raise UsageError(f"the options of model.crossing are of {' and '.join(sorted(forms))}: only one form crosses")
    crossing = {} if written is None else as_mapping(written)
    for key, value in options.items():
        form, _, option = key.partition(".")
        crossing = {form: {**crossing.get(form, {}), option: value} if option else value or {}}
    return crossing


def override_options(chain: list[dict[str, Any]], links: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The chain with single options replaced, the others as they were; a link that it lacks is added at its end."""
    chain = chain.copy()
    for key, value in links.items():
        name, _, option = key.partition(".")
        names = number(kind for link in chain for kind in link)
        if name not in names:
            chain.append({re.sub(r"-\d+$", "", name): {}})
            if number(kind for link in chain for kind in link)[-1] != name:
                raise UsageError(f"the chain has no link {name!r}: {nearest(name, [*names, *DEFENCES])}")
            names.append(name)
        place = names.index(name)
        ((kind, options),) = chain[place].items()
        chain[place] = {kind: {**options, option: value} if option and isinstance(options, Mapping) else value}
    return chain


def typed_chain(chain: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Check every link's options against its signature; `lam` alone means the one link that has a lam."""
    alone = {kind: value for link in chain for kind, value in link.items() if kind not in DEFENCES and ":" not in kind}
    links = read_links([link for link in chain if not alone.keys() & link.keys()])
    chosen = {link.name: dict(link.options) for link in links}
    for name, value in alone.items():
        owners = [link.name for link in links if name in options_of(link.kind)]
        if not owners:
            raise UsageError(explain_unowned(name, links))
        if len(owners) > 1:
            every = ", ".join(owners)
            raise UsageError(f"defence.{name} belongs to more than one of {every}: write defence.{owners[0]}.{name}")
        chosen[owners[0]][name] = value
    return [{link.kind: typed_options(link._replace(options=chosen[link.name]))} for link in links]


def explain_unowned(name: str, links: Sequence[Link]) -> str:
    others = [kind for kind in DEFENCES if name in option_types(kind)]
    if not others:
        known = {*DEFENCES, *(option for link in links for option in options_of(link.kind))}
        return f"unknown defence or option {name!r}: {nearest(name, known)}"
    had = "; ".join(f"{link.name} has {', '.join(options_of(link.kind)) or 'no options'}" for link in links)
    return (
        f"no link of the chain has the option {name!r}: {had or 'the chain is empty'}; "
        f"to add a link that has it, write defence.LINK.{name} with one of {', '.join(others)}"
    )


def options_of(kind: str) -> dict[str, Any]:
    """Options of a kind and their types; those of a defence of your own are not looked up."""
    return option_types(kind) if kind in DEFENCES else {}


def typed_options(link: Link) -> Mapping[str, Any]:
    if link.kind not in DEFENCES:
        return link.options
    check_options(f"defence {link.name!r}", link.options, options_of(link.kind))
    plain = {key: parse_yaml(value) if isinstance(value, str) else value for key, value in link.options.items()}
    try:
        typed = vars(options_parser(link.kind).parse_object(plain))
    except UsageError as error:
        raise UsageError(f"defence {link.name}: {error}") from None
    return {key: value for key, value in typed.items() if key in options_of(link.kind)}


@cache  # a sweep asks for it again and again
def options_parser(kind: str) -> Parser:
    parser = Parser(parser_mode=MODE)
    parser.add_class_arguments(DEFENCES[kind], as_group=False)
    return parser
