"""Where a traced module can be cut: which tensors would cross, and what stands in the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from torch import Tensor, fx, nn

from attcem.models.graphs import with_inputs
from attcem.models.tracing import Faults, describe, trace


@dataclass(frozen=True)
class Halves:
    """The nodes of both halves, in their order, and what crosses."""

    latent: fx.Node
    front: list[fx.Node]
    back: list[fx.Node]
    crossing: list[fx.Node]


class Places:
    """Every named place of a module, judged."""

    def __init__(self, module: nn.Module, example: Tensor) -> None:
        self.module = module
        self.graph, self.calls = trace(module, example)
        self.faults = Faults(fx.GraphModule(module, self.graph), example).of
        self.constants: set[fx.Node] = set()  # nodes that compute from parameters and buffers alone
        for node in self.graph.nodes:
            if node.op not in ("placeholder", "output") and self.constants.issuperset(node.all_input_nodes):
                self.constants.add(node)

    def clean(self) -> list[str]:
        """Names that give a clean cut, in the order in which the forward pass leaves them."""
        paths = dict.fromkeys(call.path for call in self.calls)
        return [path for path in paths if isinstance(self.judge(path), Halves)]

    def judge(self, path: str) -> Halves | str:
        """The two halves around the end of this submodule, or why there is no clean cut."""
        calls = [call for call in self.calls if call.path == path]
        if not calls:
            around = [call.path for call in self.calls if path.startswith(f"{call.path}.")]
            if not around:
                return "the forward pass never calls it as a module"
            return f"it lies inside {max(around, key=len)!r}, which is traced as one piece"
        if len(calls) > 1:
            return f"it is called {len(calls)} times, so the place is not unique"
        latent = calls[0].output
        if latent is None:
            return "it returns something other than one tensor"
        if latent.op == "placeholder":
            return "it returns the input itself, so the encoder would be empty"
        halves = self.halves(calls[0].end, latent)
        if others := [describe(node) for node in halves.crossing if node is not latent]:
            return f"besides its output {describe(latent)}, the rest of the network also needs {', '.join(others)}"
        if not halves.crossing:
            return "nothing after it uses its output"
        if all(node.op == "output" or node in self.constants for node in halves.back):
            return "nothing comes after it, so the decoder would be empty"
        if latent.name in self.faults:
            return f"it {self.faults[latent.name]}"
        if shared := self.shared(halves):
            return f"both halves would use the same weights or statistics: {', '.join(shared)}"
        return halves

    def halves(self, end: fx.Node, latent: fx.Node) -> Halves:
        """Split the nodes right after `end`; constants go to whoever needs them."""
        nodes = list(self.graph.nodes)
        position = nodes.index(end) + 1
        before, after = nodes[:position], set(nodes[position:])
        own = [node for node in before if node not in self.constants or not node.users]
        halves = [with_inputs(half, self.constants.__contains__) for half in (own, after)]
        front, back = ([node for node in nodes if node in half] for half in halves)
        crossing = [node for node in before if node not in self.constants and after.intersection(node.users)]
        return Halves(latent, front, back, crossing)

    def shared(self, halves: Halves) -> list[str]:
        front = {id(tensor) for node in halves.front for _, tensor in self.tensors(node)}
        both = (
            name
            for node in halves.back
            for name, tensor in self.tensors(node)
            if id(tensor) in front and (node.op == "call_module" or isinstance(tensor, nn.Parameter))
        )
        return list(dict.fromkeys(both))

    def tensors(self, node: fx.Node) -> Iterator[tuple[str, Tensor]]:
        target = str(node.target)
        if node.op == "get_attr":
            yield target, attrgetter(target)(self.module)
        elif node.op == "call_module":
            child = self.module.get_submodule(target)
            yield from chain(child.named_parameters(target), child.named_buffers(target))
