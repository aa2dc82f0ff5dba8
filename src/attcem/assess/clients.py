"""The audit by client: the same attacks, weighed by what each client photographs."""

from typing import Any

import numpy as np
import torch

from attcem.attacks.base import seeded
from attcem.config import AuditConfig, ClientsConfig
from attcem.data import Data
from attcem.defences import Guard
from attcem.models import Split
from attcem.threat import build_view
from attcem.train import evaluate
from attcem.types import Images, Result

REPORTED = ("mse", "psnr", "ssim", "recon_acc", "reid_top1")


def by_client(
    result: Result, trained: tuple[Split, Guard, Data], clients: list[Images], config: ClientsConfig, audit: AuditConfig
) -> list[dict[str, Any]]:
    """What an audit found, for every client but the one that attacks: no attack is run again.

    All clients release by the same law, so a client's score is Σ_c q_c s_c: q_c the share of class c in its images, s_c
    the mean over the attacked test images of that class. Classes of which nothing was attacked are left out; `covered`
    is the share of the client's images in the others.
    """
    model, guard, data = trained
    _, truth = build_view(model, guard, data, images=audit.images, seed=audit.seed, threat=audit.threat)
    means = {name: class_means(scores, truth.y.numpy(), data.classes) for name, scores in result.per_image.items()}
    worst = {name: means[f"worst/{name}"] for name in REPORTED if f"worst/{name}" in means}
    free = means["mean_image/mse"]
    accuracy = np.full(data.classes, np.nan)
    with seeded(audit.seed):
        for label in data.test.y.unique().tolist():
            accuracy[label] = evaluate(model, guard, data.test[data.test.y == label])[1]
    counts = [np.bincount(images.y.numpy(), minlength=data.classes) for images in clients]
    return [
        {
            "client": number,
            "images": int(owned.sum()),
            "classes": {data.class_names[label]: int(owned[label]) for label in np.flatnonzero(owned)},
            "accuracy": mixed(accuracy, owned),
            "worst": {name: mixed(each, owned) for name, each in worst.items()},
            "mean_image_mse": mixed(free, owned),
            "covered": float(owned[~np.isnan(free)].sum() / owned.sum()),
        }
        for number, owned in enumerate(counts)
        if number != config.attacker
    ]


def class_means(values: np.ndarray, labels: np.ndarray, classes: int) -> np.ndarray:
    return np.array([values[labels == label].mean() if (labels == label).any() else np.nan for label in range(classes)])


def mixed(means: np.ndarray, owned: np.ndarray) -> float | None:
    """Σ_c n_c m_c / Σ_c n_c over the classes whose mean is known; nothing where none of them is.

    >>> mixed(np.array([0.5, 0.25, np.nan]), np.array([1, 3, 5]))
    0.3125
    """
    known = ~np.isnan(means) & (owned > 0)
    return float(np.average(means[known], weights=owned[known])) if known.any() else None


@torch.no_grad()
def client_flags(model: Split, guard: Guard, guards: list[Guard], some: Images) -> list[str]:
    where = next(model.parameters())
    z, flags = model.encoder(some.pixels().to(where.device, where.dtype)), []
    with seeded(0):
        deployed = guard.release(z)
    for number, own in enumerate(guards):
        own = own.to(where.device, where.dtype).eval()
        flags += [f"client {number}: {flag}" for flag in own.flags if flag not in guard.flags]
        with seeded(0):
            released = own.release(z)
        if not torch.allclose(deployed, released, rtol=1e-4, atol=1e-6):
            flags.append(
                f"client {number} does not release as the deployed guard does: its local state changes what it sends, "
                "and the attacks have not seen that"
            )
    return flags
