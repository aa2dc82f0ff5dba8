"""Batches that hypothesis draws: any number of classes, most of them empty or single, repeats and constants."""

import torch
from hypothesis import strategies as st

from attcem.types import Batch

SIGMA = 0.3
EXACT = {"rel": 1e-9, "abs": 1e-9}
TOKENS = ["flat", "spatial", "pooled", "project"]
THRESHOLDS = ["noise", "constant", "schedule", "quantile"]


@st.composite
def batches(draw):
    """Samples of one of several shapes, their classes, and how many classes there are."""
    n, classes = draw(st.integers(1, 12)), draw(st.sampled_from([1, 3, 8, 600]))
    latent = draw(st.sampled_from([(1,), (4,), (3, 2), (3, 1, 1), (2, 2, 3), (8, 2, 3)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    z = torch.randn(n, *latent, generator=generator, dtype=torch.double) * draw(st.sampled_from([1e-3, 1.0, 30.0]))
    if draw(st.booleans()):
        z[:] = z[:1]  # the same sample again and again
    if draw(st.booleans()):
        z[:, 0] = 0.5  # a feature that says nothing
    return batch_of(z, torch.randint(0, classes, (n,), generator=generator), progress=0.4), classes


def batch_of(z, y, progress=0.0):
    return Batch(torch.zeros(len(z), 1, 2, 2, dtype=z.dtype), y, z, progress)


def example(n=12, latent=(2, 3, 3), classes=3, dtype=torch.double, seed=1):
    """A batch in which every class has as many samples."""
    z = torch.randn(n, *latent, generator=torch.Generator().manual_seed(seed), dtype=dtype)
    return batch_of(z.requires_grad_(), torch.arange(n) % classes)


def shuffled(batch, classes, seed):
    """The same batch in another order, its classes under other names, and what each is called now."""
    generator = torch.Generator().manual_seed(seed)
    order, rename = torch.randperm(len(batch.y), generator=generator), torch.randperm(classes, generator=generator)
    return batch_of(batch.z[order], rename[batch.y[order]]), rename


def ready(defence, latent, classes=3, sigma=SIGMA, dtype=torch.double, unlike_start=0.3, seed=3):
    """Set up in evaluation mode, every parameter moved from where it starts, so that none hides behind a 0 or 1."""
    torch.manual_seed(seed)
    defence.setup(latent=latent, classes=classes, sigma=sigma)
    for p in defence.parameters():
        p.data += unlike_start * torch.randn_like(p)
    return defence.to(dtype).eval()


def own(defence):
    return [p for p in defence.parameters() if p.requires_grad]


def gradients_are_right(defence, batch):
    """At the latents and at every parameter, along random directions."""
    named = {name: p for name, p in defence.named_parameters() if p.requires_grad}

    def penalty(z, *values):
        for (name, _), value in zip(named.items(), values, strict=True):
            replace(defence, name, value)
        return defence.penalty(batch_of(z, batch.y))

    try:
        return torch.autograd.gradcheck(penalty, (batch.z, *named.values()), fast_mode=True)
    finally:
        for name, p in named.items():
            replace(defence, name, p)


def replace(module, name, value):
    *path, last = name.split(".")
    owner = module.get_submodule(".".join(path))
    owner._parameters[last] = value


def survives_any_size(defence, scales=range(-44, 38, 3)):
    """Whether latents of any size have finite penalties and gradients; the largest are counted as lost."""
    defence = defence.float()
    start, lost = example(latent=(4, 2, 2), dtype=torch.float32), 0
    for scale in [0.0, *(10.0**exponent for exponent in scales)]:
        z = (scale * start.z.detach()).requires_grad_()
        batch = batch_of(z, start.y)
        penalty = defence.penalty(batch)
        lost += "lost" in batch.readings
        found = torch.autograd.grad(penalty, [z, *own(defence)], allow_unused=True)
        if not (penalty.isfinite() and penalty >= 0 and all(g is None or g.isfinite().all() for g in found)):
            return False
    return lost > 0


def loses_only(defence, value):
    """Whether a batch with such a number in it costs nothing but its own penalty."""
    defence, start = defence.float(), example(latent=(4, 2, 2), dtype=torch.float32)
    z = start.z.detach().clone()
    z[0, 0] = value
    z.requires_grad_()
    batch = batch_of(z, start.y)
    penalty = defence.penalty(batch)
    penalty.backward()
    defence.observe(batch_of(z.detach(), start.y))
    silent = (penalty.item(), z.grad.isfinite().all().item(), z.grad.any().item()) == (0, True, False)
    return silent and "lost" in batch.readings and defence.penalty(start).item() > 0 and "lost" not in start.readings
