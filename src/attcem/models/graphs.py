"""Work on a module's graph, and leave the module as it was; answer what a forward pass asks about shapes."""

import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, fx, nn


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


def asks_for_shape(node: fx.Node) -> bool:
    """Whether a node computes from shapes of tensors and from nothing else about them."""
    if node.op == "call_method":
        return node.target in ("size", "dim", "ndimension", "numel")
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] in ("shape", "ndim", "dtype", "device")
    return node.target in vars(operator).values() and all(map(asks_for_shape, node.all_input_nodes))


def answer(node: fx.Node, module: nn.Module, example: Tensor) -> bool | None:
    """The truth of a node for inputs like the example, in batches of any size; None where one cannot say."""
    if not asks_for_shape(node):
        return None
    needed = with_inputs([node])
    question = copy_graph([each for each in node.graph.nodes if each in needed], output=node)
    with undisturbed(module), torch.no_grad():
        asked = fx.Interpreter(module.eval(), graph=question)
        once, twice = (bool(asked.run(batch)) for batch in (example.clone(), torch.cat([example, example])))
    return once if once == twice else None
