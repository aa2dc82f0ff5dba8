"""Graphs in a quarter of their bytes: weights in 8 bits, arithmetic as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from attcem.ship.graphs import needed

SMALLEST = 1024  # numbers of a weight that is worth it


def compact(path: Path) -> None:
    """Store the large weights of an ONNX file as w ≈ s·q, q of 8 bits and one s for each row."""
    onnx = needed("onnx")
    model = onnx.load_model_from_string(path.read_bytes())
    kept, nodes = [], []
    for weight in model.graph.initializer:
        values = onnx.numpy_helper.to_array(weight)
        if values.dtype != np.float32 or values.ndim < 2 or values.size < SMALLEST:
            kept.append(weight)
            continue
        scale = np.abs(values).reshape(len(values), -1).max(1).clip(1e-12) / np.float32(127)
        codes = np.rint(values / scale.reshape(-1, *[1] * (values.ndim - 1))).astype(np.int8)
        names = f"{weight.name}.codes", f"{weight.name}.scale"
        kept += [onnx.numpy_helper.from_array(each, name) for each, name in zip((codes, scale), names, strict=True)]
        nodes.append(onnx.helper.make_node("DequantizeLinear", names, [weight.name], axis=0))
    unchanged = list(model.graph.node)
    for field, content in (("initializer", kept), ("node", nodes + unchanged)):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(content)
    path.write_bytes(model.SerializeToString())
