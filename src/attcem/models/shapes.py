"""Answers to questions that a forward pass asks about shapes, so that tracing can follow them."""

from __future__ import annotations

import operator

import torch
from torch import Tensor, fx, nn

from attcem.models.graphs import copy_graph, undisturbed, with_inputs

ATTRIBUTES = ("shape", "ndim", "dtype", "device")
METHODS = ("size", "dim", "ndimension", "numel")


def asks_for_shape(node: fx.Node) -> bool:
    """Whether a node computes from shapes of tensors and from nothing else about them."""
    if node.op == "call_method" and node.target in METHODS:
        return True
    if node.op != "call_function":
        return False
    if node.target is getattr:
        return node.args[1] in ATTRIBUTES
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
