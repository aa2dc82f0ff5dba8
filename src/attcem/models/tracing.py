"""A module's forward pass as a graph, with a note of where each call of a submodule ended and what it returned."""

import inspect
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor, fx, nn

from attcem.models.graphs import answer, undisturbed


@dataclass(frozen=True)
class Call:
    """One call of a submodule: the last node of the graph when it returned, and the node it returned."""

    path: str
    end: fx.Node
    output: fx.Node | None  # also where it is the only value of a tuple, list or dictionary; none where there are more


class CallTracer(fx.Tracer):
    """The usual symbolic tracer, which also keeps a list of calls."""

    # otherwise what is computed from a buffer would be frozen into the graph
    proxy_buffer_attributes = True

    def __init__(self, answers: Sequence[bool]) -> None:
        super().__init__()
        self.answers = iter(answers)
        self.calls: list[Call] = []

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        output = super().call_module(m, forward, args, kwargs)
        end = next(iter(reversed(self.graph.nodes)))
        several = list(output.values()) if isinstance(output, dict) else output
        value = several[0] if isinstance(several, tuple | list) and len(several) == 1 else output
        self.calls.append(Call(self.path_of_module(m), end, value.node if isinstance(value, fx.Proxy) else None))
        return output

    def to_bool(self, obj: fx.Proxy) -> bool:
        """The next answer that is known to a question of the forward pass, or an end to tracing."""
        for known in self.answers:
            return known
        raise Asked(obj.node)


class Asked(Exception):
    """The forward pass wants to know whether something is true; while it is traced, no module can be run."""

    def __init__(self, node: fx.Node) -> None:
        super().__init__("its next step depends on a traced value")
        self.node = node


def trace(module: nn.Module, example: Tensor) -> tuple[fx.Graph, list[Call]]:
    """Graph and calls of a module in eval mode; an error if training would run another graph."""
    with undisturbed(module):
        training = trace_as_is(module.train(), example)[0]
    graph, calls = trace_as_is(module.eval(), example)
    lines, other_lines = node_lines(graph), node_lines(training)
    if list(lines) != list(other_lines):
        differing = (pair for pair in zip_longest(lines, other_lines) if pair[0] != pair[1])
        odd = next(other_lines.get(training_line) or lines[line] for line, training_line in differing)
        raise ValueError(
            f"{type(module).__name__} runs another graph in training than in evaluation"
            f" (at {describe(odd)}), and only one of them could be cut: replace what reads "
            "self.training, such as F.dropout or F.batch_norm, by modules such as nn.Dropout or nn.BatchNorm2d"
        )
    return graph, calls


def trace_as_is(module: nn.Module, example: Tensor) -> tuple[fx.Graph, list[Call]]:
    """Trace in the present mode; whatever goes wrong is reported with its line in the user's code.

    A question about shapes ends tracing; it is answered by the example, and tracing begins again.
    """
    parameters = list(inspect.signature(module.forward).parameters.values())
    defaults = {p.name: p.default for p in parameters[1:] if p.default is not p.empty}
    answers: list[bool] = []
    while True:
        tracer = CallTracer(answers)
        try:
            graph = tracer.trace(module, concrete_args=defaults or None)
            break
        except Exception as error:
            found = answer(error.node, module, example) if isinstance(error, Asked) else None
            if found is None:
                reason = next(iter(str(error).splitlines()), repr(error))
                raise ValueError(
                    f"{type(module).__name__} cannot be traced{place(error)}: {reason}. Control flow must not depend "
                    "on the values of the input or on how many there are: write it without (torch.where instead of "
                    "if), or cut it by hand: attcem.models.Split(encoder, decoder, latent_shape=..., classes=...)"
                ) from error
            answers.append(found)
    keep_first_input(module, graph)
    return graph, tracer.calls


def place(error: Exception) -> str:
    """The innermost line outside torch and this file, where the user can change something."""
    inside = (torch.__file__.removesuffix("__init__.py"), __file__, "<string>")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(inside)]
    return f" at {frames[-1].filename}:{frames[-1].lineno}, `{frames[-1].line}`" if frames else ""


def keep_first_input(module: nn.Module, graph: fx.Graph) -> None:
    """Remove optional inputs, which hold their defaults, and the assertions that tracing added for them."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    derived = set(inputs[1:])
    for node in graph.nodes:
        if derived.intersection(node.all_input_nodes):
            derived.add(node)
    for node in reversed(list(graph.nodes)):
        if node in derived and not node.users and node.op != "output":
            graph.erase_node(node)
    left = [node for node in graph.nodes if node.op == "placeholder"]
    if len(left) != 1:
        raise ValueError(
            f"{type(module).__name__} takes {len(left)} inputs ({', '.join(str(node.target) for node in left)}): "
            "only a module of one input can be cut, so wrap it in one whose forward takes x alone"
        )


def node_lines(graph: fx.Graph) -> dict[str, fx.Node]:
    """What each node computes, as text: two graphs are the same when these are."""
    return {f"{node.name}: {node.op} {node.target} {node.args} {node.kwargs}": node for node in graph.nodes}


def describe(node: fx.Node) -> str:
    if node.op == "placeholder":
        return f"the input {str(node.target)!r}"
    stack = node.meta.get("nn_module_stack") or {}
    path = next(reversed(stack.values()))[0] if stack else ""
    return f"{node.name!r} of {path!r}" if path else f"{node.name!r} of the outermost forward"


class Faults(fx.Interpreter):
    """Runs a graph on an example and notes for each node why its value could not be a latent, if so."""

    def __init__(self, graph_module: fx.GraphModule, example: Tensor) -> None:
        super().__init__(graph_module)
        self.example, self.of = example.clone(), dict[str, str]()
        # a blank example stays blank through many layers that do hide something
        self.blank = bool(example.min() == example.max())
        with torch.no_grad():
            self.run(example.clone())

    def run_node(self, n: fx.Node) -> Any:
        value = super().run_node(n)
        if not isinstance(value, Tensor):
            self.of[n.name] = f"gives a {type(value).__name__}, not a tensor"
        elif not value.is_floating_point() or value.dim() < 2 or len(value) != len(self.example):
            self.of[n.name] = f"gives {value.dtype} of shape {tuple(value.shape)}, not one float latent per image"
        elif not self.blank and torch.equal(value.flatten(), self.example.flatten()):
            self.of[n.name] = "gives the input itself, so the encoder would hide nothing"
        return value
