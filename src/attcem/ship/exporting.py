"""Export: both halves of a trained network, their audit, and what a user of them must know."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from attcem.defences import Defence, Guard, check_described
from attcem.models import Split
from attcem.ship.artifact import AUDIT, WEIGHTS, Artifact, Picture, Randomness, WireFormat, fingerprint, read_artifact
from attcem.ship.card import mlflow_signature, model_card
from attcem.ship.graphs import write_graph
from attcem.ship.halves import CloudHalf, DeviceHalf
from attcem.types import Result

EXAMPLES = 3  # pictures that a graph is traced and checked with


def export(
    model: Split,
    guard: Guard | Defence,
    path: str | Path,
    *,
    audit: Result | None = None,
    settings: Path | None = None,
    shape: Sequence[int] | None = None,
    class_names: Sequence[str] = (),
) -> Path:
    """Write the artifact of a trained network: the device's half with its release, the cloud's half, and the audit.

    The device's half takes its random numbers as inputs. Without an `audit` (the Result of this very network), no
    device will use the artifact; with the run's `settings` (its config.yaml) it can be audited again. `shape` is that
    of an image, for a network cut from a module of your own.
    """
    guard, path = Guard.of(guard), Path(path)
    if path.exists() and any(path.iterdir()):
        raise ValueError(f"{path} is not empty: choose another folder, or remove it")
    if audit is not None:
        check_audit(guard, audit)
    if shape is None and model.spec is None:
        raise ValueError("export needs shape=(channels, height, width) for a network cut from a module of your own")
    image = tuple(shape or model.spec["shape"])  # type: ignore[index]
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as made:
        folder = Path(made) / "artifact"
        folder.mkdir()
        artifact = write_halves(model, guard, image, class_names, folder, audit)
        (folder / "README.md").write_text(model_card(artifact, audit, path.name))
        (folder / "MLmodel").write_text(mlflow_signature(artifact))
        if audit is not None:
            audit.save(folder / AUDIT)
            if settings is not None:
                shutil.copyfile(settings, folder / AUDIT / settings.name)
        files = sorted(file for file in folder.rglob("*") if file.is_file())
        artifact.files.update({file.relative_to(folder).as_posix(): fingerprint(file) for file in files})
        artifact.save(folder)
        read_artifact(folder)
        if path.exists():
            path.rmdir()
        shutil.copytree(folder, path)
    return path


def write_halves(
    model: Split,
    guard: Guard,
    image: tuple[int, ...],
    class_names: Sequence[str],
    folder: Path,
    audit: Result | None,
) -> Artifact:
    """Both graphs and the weights in a folder, and the description of them."""
    where = next(model.parameters()).device
    model, guard = model.cpu().float().eval(), guard.cpu().float().eval()
    device, cloud = DeviceHalf(model, guard), CloudHalf(model, guard)
    x, latent = torch.rand(EXAMPLES, *image), model.latent_shape
    noise = list(guard.draw(torch.zeros(EXAMPLES, *latent)).values())
    with torch.no_grad():
        sent: Tensor = device(x, *noise)
    names = list(guard.distributions)
    write_graph(device, [x, *noise], ["image", *names], "sent", folder / "device")
    write_graph(cloud, [sent], ["sent"], "logits", folder / "cloud")
    tensors = {f"model.{name}": tensor for name, tensor in model.state_dict().items()}
    tensors |= {f"guard.{name}": tensor for name, tensor in guard.state_dict().items()}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / WEIGHTS)
    model.to(where), guard.to(where)
    wire = device.wire
    low, high = (None, None) if wire is None else wire.grid
    return Artifact(
        picture=Picture(list(image), list(class_names) or [str(label) for label in range(model.classes)]),
        randomness=[Randomness(name, law, list(latent)) for name, law in guard.distributions.items()],
        wire=WireFormat(32 if wire is None else wire.bits, list(sent.shape[1:]), list(latent), low, high),
        nats=None if audit is None else audit.bounds.get("rate_nats"),
        network=model.spec,
        files={},
        versions={} if audit is None else audit.versions,
    )


def check_audit(guard: Guard, audit: Result) -> None:
    """Raise where a result is that of another defence than the one to be shipped."""
    try:
        check_described(guard, audit.config["defence"])
    except ValueError as error:
        raise ValueError(
            f"the audit is that of another defence ({error}): audit the network under this guard"
        ) from None
