"""Graphs that leave Python: written as ONNX and as torch programs, and never with a generator inside."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

CLOSE = 1e-4  # how far a graph may be from Python, in units of what it computes
ROUNDED_OTHERWISE = 0.02  # share of the bytes that may differ
RANDOM_OPERATORS = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli", "Dropout"}
)
OPSET = 18


def write_graph(half: nn.Module, inputs: Sequence[Tensor], names: Sequence[str], output: str, path: Path) -> None:
    """Write `path`.onnx and `path`.pt2 of a half for any number of pictures, and prove that they compute the same."""
    half.eval()
    batch = torch.export.Dim("batch", min=1, max=65_536)
    shapes = tuple({0: batch} for _ in inputs)
    if len(inputs) > 1:  # those after the first are *randomness
        shapes = (shapes[0], shapes[1:])  # type: ignore[assignment]
    with torch.no_grad(), quiet():
        program = torch.export.export(half, tuple(inputs), dynamic_shapes=shapes)
        torch.export.save(program, path.with_suffix(".pt2"))
        onnx = torch.onnx.export(program, dynamo=True, opset_version=OPSET, verbose=False, external_data=False)
        assert onnx is not None
    model = onnx.model_proto
    rename(model, names, output)
    path.with_suffix(".onnx").write_bytes(model.SerializeToString())
    if drawn := random_operators(path.with_suffix(".onnx")):
        raise ValueError(f"the graph of {path.name} draws its own random numbers ({', '.join(drawn)}): declare them")
    session = open_session(path.with_suffix(".onnx"))
    for given in (inputs, [each[:1] for each in inputs]):
        with torch.no_grad():
            wanted = half(*given).numpy()
        found = session.run(None, dict(zip(names, (each.numpy() for each in given), strict=True)))[0]
        check_close(path.name, found, wanted)


def check_close(name: str, found: np.ndarray, wanted: np.ndarray) -> None:
    """Raise where a graph is not Python's function; bytes may differ where a value lies between two of the grid."""
    if found.dtype == np.uint8 and (found != wanted).mean() < ROUNDED_OTHERWISE:
        return
    far = float(np.abs(found.astype(np.float64) - wanted).max())
    if not far <= CLOSE * max(1.0, float(np.abs(wanted).max())):
        raise ValueError(f"the exported graph of {name} is {far:.3g} away from what was audited: nothing is shipped")


def rename(model: Any, names: Sequence[str], output: str) -> None:
    """Give a graph's inputs and its output names that people can type."""
    graph = model.graph
    new = dict(zip((each.name for each in graph.input), names, strict=True)) | {graph.output[0].name: output}
    for value in (*graph.input, *graph.output, *graph.value_info):
        value.name = new.get(value.name, value.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]


def random_operators(path: Path) -> list[str]:
    """The operators of an ONNX file that draw random numbers, at any depth."""
    onnx = needed("onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    return sorted({node.op_type for node in every_node(model)} & RANDOM_OPERATORS)


def every_node(model: Any) -> Iterator[Any]:
    """Of the graph, of the graphs inside its nodes, and of the functions that it brings."""
    waiting = [model.graph, *model.functions]
    while waiting:
        for node in waiting.pop().node:
            yield node
            for attribute in node.attribute:
                waiting += [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]


def open_session(path: Path | bytes, threads: int = 1) -> Any:
    """An onnxruntime session on the CPU."""
    onnxruntime = needed("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    content = path if isinstance(path, bytes) else path.read_bytes()
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def needed(name: str, extra: str = "ship") -> Any:
    """A module that an extra installs."""
    try:
        return import_module(name)
    except ImportError:
        raise ValueError(f"{name} is not installed: pip install 'attcem[{extra}]'") from None


@contextmanager
def quiet() -> Iterator[None]:
    """Without the exporter's remarks on its own versions."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
