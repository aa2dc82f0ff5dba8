"""The table of defences: a new one is its file and its line here."""

import contextlib
import inspect
import json
import sys
from pathlib import Path
from typing import Any

from attcem.defences.adversarial_noise import AdversarialNoise
from attcem.defences.arl import ARL
from attcem.defences.base import INPUT_GRADIENT as INPUT_GRADIENT
from attcem.defences.base import NOISE, Defence, Undefended
from attcem.defences.base import WEIGHTED as WEIGHTED
from attcem.defences.base import Stage as Stage
from attcem.defences.bound import Bound
from attcem.defences.dct import DCT
from attcem.defences.dropout import Dropout
from attcem.defences.fisher import Fisher
from attcem.defences.gated import Gated
from attcem.defences.gmm import GMM
from attcem.defences.guard import Guard
from attcem.defences.guard import own_parameters as own_parameters
from attcem.defences.hybrid import Hybrid
from attcem.defences.lca import LCA
from attcem.defences.local_dp import LocalDP
from attcem.defences.noise import Noise
from attcem.defences.nopeek import NoPeek
from attcem.defences.pruning import Pruning
from attcem.defences.reversed import Reversed
from attcem.defences.slot import Slot
from attcem.defences.surrogate import Insight as Insight
from attcem.defences.surrogate import Surrogate as Surrogate
from attcem.defences.topk import TopK
from attcem.defences.transfer import Transfer
from attcem.defences.vib import VIB
from attcem.defences.wire import Wire
from attcem.links import as_chain, read_links
from attcem.naming import check_options, look_up

Chain = Guard  # its name in the first edition

DEFENCES: dict[str, type[Defence]] = {
    "none": Undefended,
    "noise": Noise,
    "gmm": GMM,
    "gated": Gated,
    "slot": Slot,
    "bound": Bound,
    "hybrid": Hybrid,
    "local_dp": LocalDP,
    "dropout": Dropout,
    "topk": TopK,
    "nopeek": NoPeek,
    "vib": VIB,
    "lca": LCA,
    "arl": ARL,
    "adversary": Reversed,
    "adversarial_noise": AdversarialNoise,
    "fisher": Fisher,
    "pruning": Pruning,
    "transfer": Transfer,
    "dct": DCT,
    "wire": Wire,
}
for _kind, _defence in DEFENCES.items():
    _defence.kind = _kind


def create_defence(name: str, **options: Any) -> Defence:
    """Make a defence by its name: `create_defence("noise", sigma=0.1)`."""
    cls = look_up("defence", name, DEFENCES)
    check_options(f"defence {name!r}", options, option_types(name))
    try:
        return cls(**options)
    except TypeError as error:
        raise ValueError(f"defence {name!r} cannot be made with {options}: {error}") from error


def build_defence(chain: Any) -> Guard:
    """Make the guard that a configuration describes, as `[{kind: options}, …]`; an empty one is undefended."""
    links = read_links(chain)
    for link in links:
        if ":" in link.kind:
            raise ValueError(
                f"defence {link.kind!r} is your own class; attcem never runs code named in a file: make it in Python "
                "and pass it, as in load_run(folder, guard=your guard)"
            )
    guard = Guard(*(create_defence(link.kind, **link.options) for link in links))
    silent = [name for name, link in guard.named.items() if NOISE in link.needs and guard.sigma == 0]
    if silent:
        raise ValueError(f"defence {silent[0]!r} means nothing without noise: add noise, as in defence.noise.sigma=0.1")
    return guard


def option_types(defence: str | type[Defence]) -> dict[str, Any]:
    """The options that a defence is made with, given by its name in the table or its class, and their types."""
    cls = DEFENCES[defence] if isinstance(defence, str) else defence
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    return {p.name: p.annotation for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def describe(guard: Guard | Defence) -> list[dict[str, dict[str, Any]]]:
    """The configuration that `build_defence` makes this guard from; own defences stand there by their import path."""
    return as_chain([{kind_of(link): options_of(link)} for link in Guard.of(guard).chained])  # type: ignore[arg-type]


def check_described(guard: Guard | Defence, chain: Any) -> None:
    """Raise where a guard is not what a configuration describes, and say what differs."""
    written = {
        link.name: describe(create_defence(link.kind, **link.options))[0]  # with the defaults that it leaves out
        if link.kind in DEFENCES
        else {link.kind: link.options}
        for link in read_links(chain)
    }
    given = {link.name: {link.kind: link.options} for link in read_links(describe(guard))}
    if list(written.items()) == list(given.items()):
        return
    unlike = [
        f"{name} was {written.get(name, 'not there')}, now {given.get(name, 'not there')}"
        for name in {**written, **given}
        if written.get(name) != given.get(name)
    ] or [f"the order was {', '.join(written)}, now {', '.join(given)}"]
    raise ValueError(f"the guard is not the one that was trained: {'; '.join(unlike)}; make it with the same options")


def kind_of(link: Defence) -> str:
    """Its name in the table, or `package.module:Class`; a script is named as if it were imported."""
    cls = type(link)
    if DEFENCES.get(cls.kind) is cls:
        return cls.kind
    module = cls.__module__
    if module == "__main__":
        script = sys.modules["__main__"]
        module = script.__spec__.name if script.__spec__ else Path(getattr(script, "__file__", module)).stem
    return f"{module}:{cls.__qualname__}"


def options_of(link: Defence) -> dict[str, Any]:
    """What a link was made with, as far as it keeps that under the same names and JSON can hold it."""
    found = {}
    for option in option_types(type(link)):
        with contextlib.suppress(AttributeError, TypeError, ValueError):
            found[option] = json.loads(json.dumps(getattr(link, option)))
    return found
