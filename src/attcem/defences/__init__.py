"""The table of defences: a new one is its file and its line here."""

import inspect
from collections.abc import Mapping
from typing import Any

from attcem.defences.adversarial_noise import AdversarialNoise
from attcem.defences.arl import ARL
from attcem.defences.base import Chain, Defence, Stage, Undefended
from attcem.defences.bound import Bound
from attcem.defences.dropout import Dropout
from attcem.defences.fisher import Fisher
from attcem.defences.gated import Gated
from attcem.defences.gmm import GMM
from attcem.defences.hybrid import Hybrid
from attcem.defences.lca import LCA
from attcem.defences.local_dp import LocalDP
from attcem.defences.noise import Noise
from attcem.defences.nopeek import NoPeek
from attcem.defences.pruning import Pruning
from attcem.defences.slot import Slot
from attcem.defences.surrogate import Insight, Surrogate
from attcem.defences.topk import TopK
from attcem.defences.transfer import Transfer
from attcem.defences.vib import VIB
from attcem.naming import check_options, look_up

__all__ = [
    "ARL",
    "DEFENCES",
    "GMM",
    "LCA",
    "VIB",
    "AdversarialNoise",
    "Bound",
    "Chain",
    "Defence",
    "Dropout",
    "Fisher",
    "Gated",
    "Hybrid",
    "Insight",
    "LocalDP",
    "NoPeek",
    "Noise",
    "Pruning",
    "Slot",
    "Stage",
    "Surrogate",
    "TopK",
    "Transfer",
    "Undefended",
    "build_defence",
    "create_defence",
    "describe",
]

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
    "adversarial_noise": AdversarialNoise,
    "fisher": Fisher,
    "pruning": Pruning,
    "transfer": Transfer,
}


def create_defence(name: str, **options: Any) -> Defence:
    """Make a defence by its name: `create_defence("noise", sigma=0.1)`."""
    cls = look_up("defence", name, DEFENCES)
    check_options(f"defence {name!r}", options, option_types(name))
    try:
        return cls(**options)
    except TypeError as error:
        raise ValueError(f"defence {name!r} cannot be made with {options}: {error}") from error


def build_defence(chain: Mapping[str, Mapping[str, Any]]) -> Defence:
    """Make the chain that a configuration describes: name → options; an empty one is undefended."""
    links = [create_defence(name, **options) for name, options in chain.items()] or [Undefended()]
    guard = links[0] if len(links) == 1 else Chain(*links)
    silent = [name for name, link in zip(chain, links, strict=False) if link.needs_noise and guard.sigma == 0]
    if silent:
        raise ValueError(f"defence {silent[0]!r} means nothing without noise: add noise, as in defence.noise.sigma=0.1")
    return guard


def option_types(name: str) -> dict[str, Any]:
    """The options of a defence and their annotated types."""
    parameters = list(inspect.signature(DEFENCES[name].__init__).parameters.values())[1:]
    return {p.name: p.annotation for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def describe(guard: Defence) -> dict[str, dict[str, Any]]:
    """The configuration that `build_defence` would make this chain from."""
    names = {cls: name for name, cls in DEFENCES.items()}
    chain = {}
    for link in guard.links:
        name = names.get(type(link), type(link).__name__)
        chain[name] = {option: getattr(link, option) for option in option_types(name)} if name in DEFENCES else {}
    return chain
