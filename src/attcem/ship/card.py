"""What people read of an artifact: a model card, and the signature that MLflow asks for."""

from __future__ import annotations

import json

from attcem.ship.artifact import Artifact
from attcem.types import Result


def model_card(artifact: Artifact, audit: Result | None, name: str) -> str:
    """README.md in the layout of the Hugging Face Hub."""
    channels, height, width = artifact.picture.shape
    drawn = [f"`{each.name}` ({each.distribution}, {each.shape})" for each in artifact.randomness]
    size = artifact.wire
    lines = [
        "---",
        "library_name: attcem",
        "pipeline_tag: image-classification",
        "tags: [split-inference, privacy, onnx]",
        "---",
        "",
        f"# {name}",
        "",
        f"A network cut in two. `device.onnx` turns an image ({channels}×{height}×{width}, float32 in [0, 1]) into",
        f"what is sent ({size.dtype}, {size.shape} for each picture); `cloud.onnx` turns that into the logits of "
        f"{len(artifact.picture.classes)} classes.",
        "",
        f"Random numbers of the device's half: {', '.join(drawn) or 'none'}. They are inputs of its graph, to be drawn",
        "from a cryptographic source, fresh for every picture: numbers that can be predicted protect nothing.",
        "",
    ]
    return "\n".join(lines + (audit_lines(audit) if audit else ["**Not audited: no device will use it.**", ""]))


def audit_lines(audit: Result) -> list[str]:
    """What was found about it, and under which attacks."""
    free = audit.baselines["mean_image"]
    rows = {
        "accuracy": f"{audit.accuracy:.4f}",
        "worst-case MSE": f"{audit.worst.mse:.5f}",
        "MSE of the mean image, a free guess": f"{free.mse:.5f}",
        "MSE ratio: 1 is nothing beyond that guess": f"{audit.mse_ratio:.3f}",
        "worst-case SSIM": f"{audit.worst.ssim:.3f}",
        "suite": f"{audit.suite}, threat model {audit.threat}",
        "commit": audit.commit or "unknown",
    }
    table = ["## Audit", "", "| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items()), ""]
    flags = [f"- {flag}" for flag in audit.flags] or ["None."]
    pictures = ["![originals](audit/images/original.png)", "", "![closest guesses](audit/images/worst.png)", ""]
    return [*table, "### Flags", "", *flags, "", "### What the closest attacks rebuilt", "", *pictures]


def mlflow_signature(artifact: Artifact) -> str:
    """MLmodel: the cloud's half as MLflow loads it."""

    def tensor(name: str, dtype: str, shape: list[int]) -> dict[str, object]:
        return {"name": name, "type": "tensor", "tensor-spec": {"dtype": dtype, "shape": [-1, *shape]}}

    inputs = [tensor("sent", artifact.wire.dtype, artifact.wire.shape)]
    outputs = [tensor("logits", "float32", [len(artifact.picture.classes)])]
    return "\n".join(
        [
            "flavors:",
            "  onnx:",
            "    data: cloud.onnx",
            "    providers: [CPUExecutionProvider]",
            "signature:",
            f"  inputs: '{json.dumps(inputs)}'",
            f"  outputs: '{json.dumps(outputs)}'",
            "",
        ]
    )
