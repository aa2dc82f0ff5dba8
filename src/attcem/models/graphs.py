"""Work on a module's graph, and leave the module as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from torch import fx, nn


@contextmanager
def undisturbed(module: nn.Module) -> Iterator[None]:
    """Give modes and attributes back as they were: tracing writes constants onto the module it traces."""
    modes = {child: child.training for child in module.modules()}
    attributes = set(vars(module))
    try:
        yield
    finally:
        for child, mode in modes.items():
            child.training = mode
        for name in set(vars(module)) - attributes:
            delattr(module, name)


def copy_graph(nodes: Iterable[fx.Node], *, latent: fx.Node | None = None, output: fx.Node | None = None) -> fx.Graph:
    """A graph of these nodes in their order; `latent` becomes its input, or `output` its output."""
    graph = fx.Graph()
    copies: dict[fx.Node, fx.Node] = {}
    if latent is not None:
        copies[latent] = graph.placeholder("latent")
    for node in nodes:
        copies[node] = graph.node_copy(node, lambda needed: copies[needed])
    if output is not None:
        graph.output(copies[output])
    return graph


def with_inputs(nodes: Iterable[fx.Node], wanted: Callable[[fx.Node], bool] = lambda node: True) -> set[fx.Node]:
    """The nodes, and every wanted one that they need."""
    found = set(nodes)
    waiting = list(found)
    while waiting:
        for needed in waiting.pop().all_input_nodes:
            if wanted(needed) and needed not in found:
                found.add(needed)
                waiting.append(needed)
    return found
