"""Free attacks: what anyone gets without training anything. No table is complete without them."""

import torch
from jaxtyping import Int64
from torch import Tensor

from attcem.attacks.base import Pictures
from attcem.data.loader import in_order
from attcem.types import View


def mean_image(view: View, labels: Int64[Tensor, " b"]) -> Pictures:
    return view.public.mean().expand(len(labels), -1, -1, -1)


def class_mean(view: View, labels: Int64[Tensor, " b"]) -> Pictures:
    """The average public image of the true class: what the label alone would give away."""
    overall, classes = view.public.mean(), view.public.y
    means = {c: view.public[classes == c].mean() for c in classes.unique().tolist()}
    return torch.stack([means.get(c, overall) for c in labels.tolist()])


def nearest_public(view: View, labels: Int64[Tensor, " b"]) -> Pictures:
    assert view.oracle is not None, "whoever asks for this baseline may query"
    known = torch.cat([view.oracle(x).flatten(1) for x, _ in in_order(view.public, device=view.targets.device)])
    nearest = torch.cat([torch.cdist(part.flatten(1), known).argmin(1) for part in view.targets.split(256)])
    return view.public[nearest.cpu()].pixels()


BASELINES = {"mean_image": mean_image, "class_mean": class_mean, "nearest_public": nearest_public}
