"""The audit by client: the same attacks, weighed by what each client photographs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from attcem.config import AuditConfig, ClientsConfig
from attcem.data import Data
from attcem.defences import Guard
from attcem.models import Split
from attcem.threat import build_view
from attcem.train import evaluate
from attcem.types import Images, Result

REPORTED = ("mse", "psnr", "ssim", "recon_acc", "reid_top1")


def by_client(
    result: Result,
    trained: tuple[Split, Guard, Data],
    clients: Sequence[Images],
    config: ClientsConfig,
    audit: AuditConfig,
) -> list[dict[str, Any]]:
    """What an audit found, for every client but the one that attacks: no attack is run again.

    All clients release by the same law, so a client's score is Σ_c q_c s_c: q_c the share of class c in its images, s_c
    the mean over the attacked test images of that class. Classes of which nothing was attacked are left out; `covered`
    is the share of the client's images in the others.
    """
    model, guard, data = trained
    _, truth = build_view(model, guard, data, images=audit.images, seed=audit.seed, threat=audit.threat)
    labels = truth.y.numpy()
    scores = {
        name: class_means(result.per_image[f"worst/{name}"], labels, data.classes)
        for name in REPORTED
        if f"worst/{name}" in result.per_image
    }
    free = class_means(result.per_image["mean_image/mse"], labels, data.classes)
    accuracy = class_accuracy(model, guard, data, seed=audit.seed)
    table = []
    for number, images in enumerate(clients):
        if number == config.attacker:
            continue
        owned = np.bincount(images.y.numpy(), minlength=data.classes)
        table.append(
            {
                "client": number,
                "images": len(images),
                "classes": {data.class_names[label]: int(owned[label]) for label in np.flatnonzero(owned)},
                "accuracy": mixed(accuracy, owned),
                "worst": {name: mixed(means, owned) for name, means in scores.items()},
                "mean_image_mse": mixed(free, owned),
                "covered": float(owned[~np.isnan(free)].sum() / owned.sum()),
            }
        )
    return table


def class_means(values: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    """The mean of each class; NaN where it has no image."""
    return np.array([values[labels == label].mean() if (labels == label).any() else np.nan for label in range(classes)])


def mixed(means: np.ndarray, owned: np.ndarray) -> float | None:
    """Σ_c n_c m_c / Σ_c n_c over the classes whose mean is known; nothing where none of them is.

    >>> mixed(np.array([0.5, 0.25, np.nan]), np.array([1, 3, 5]))
    0.3125
    """
    known = ~np.isnan(means) & (owned > 0)
    return float(np.average(means[known], weights=owned[known])) if known.any() else None


def class_accuracy(model: Split, guard: Guard, data: Data, seed: int) -> np.ndarray:
    """Accuracy on the released test images of each class; NaN where there are none."""
    found = np.full(data.classes, np.nan)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for label in data.test.y.unique().tolist():
            found[label] = evaluate(model, guard, data.test[data.test.y == label])[1]
    return found


def client_flags(model: Split, guard: Guard, guards: Sequence[Guard], some: Images) -> list[str]:
    """What the clients' own guards have to say, and whether all of them release as the deployed one does."""
    where = next(model.parameters())
    with torch.no_grad():
        z = model.encoder(some.pixels().to(where.device, where.dtype))
    known, flags = set(guard.flags), []
    for number, own in enumerate(guards):
        own = own.to(where.device, where.dtype).eval()
        flags += [f"client {number}: {flag}" for flag in own.flags if flag not in known]
        if not torch.allclose(released(guard, z), released(own, z), rtol=1e-4, atol=1e-6):
            flags.append(
                f"client {number} does not release as the deployed guard does: its local state changes what it sends, "
                "and the attacks have not seen that"
            )
    return flags


@torch.no_grad()
def released(guard: Guard, z: torch.Tensor) -> torch.Tensor:
    """What a guard lets out, with the same noise at every call."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return guard.release(z)
