"""The cloud's half as a model repository, for NVIDIA Triton and for KServe with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from attcem.ship.artifact import CLOUD, read_artifact
from attcem.ship.tensors import Signature, TensorSpec

CONFIG, MODEL = "config.pbtxt", "1/model.onnx"


def write_repository(folder: str | Path, repository: str | Path, *, name: str = "cloud", batch: int = 64) -> Path:
    """Add the cloud's half of an artifact to a model repository, under the names that a device asks for."""
    model = Path(repository) / name
    check_free(repository, name)
    signature = Signature.of(read_artifact(folder), batch)
    (model / MODEL).parent.mkdir(parents=True)
    shutil.copyfile(Path(folder) / CLOUD, model / MODEL)
    (model / CONFIG).write_text(model_config(name, signature))
    return model


def check_free(repository: str | Path, name: str = "cloud") -> None:
    """Raise where a repository has the model already."""
    if (Path(repository) / name).exists():
        raise ValueError(f"{Path(repository) / name} is there already: choose another repository, or remove it")


def model_config(name: str, signature: Signature) -> str:
    """config.pbtxt: what crosses and what comes back, computed together where requests wait."""
    return "\n".join(
        [
            f'name: "{name}"',
            'backend: "onnxruntime"',
            f"max_batch_size: {signature.most}",
            f"input [ {tensor(signature.sent)} ]",
            f"output [ {tensor(signature.logits)} ]",
            "dynamic_batching { }",
            "",
        ]
    )


def tensor(spec: TensorSpec) -> str:
    """One picture's tensor; the batch comes before it."""
    return f'{{ name: "{spec.name}" data_type: TYPE_{spec.datatype} dims: {list(spec.shape)} }}'
