"""One real training step, with and without a surrogate, for the benchmarks that compare them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from attcem.defences import Defence, Guard, Noise, create_defence, own_parameters
from attcem.models import Split, split
from attcem.train.gradients import StepReport, one_pass
from attcem.train.schedule import RECIPES
from attcem.types import Batch

SIGMA = 0.1
BATCH = 128
CLASSES = 10
LATENT = (8, 8, 8)
"""Of the network in `Step`."""

PRIVATE = 33_750
"""Private images of CIFAR-10: how many latents a review sees."""

SURROGATES: dict[str, tuple[str, dict]] = {
    "gated": ("gated", {}),
    "bound(diag)": ("bound", {"cov": "diag"}),
    "slot": ("slot", {}),
    "bound(slot)": ("bound", {"assign": "slot", "tokens": "spatial", "memory": 0.9}),
    "hybrid": ("hybrid", {}),
    "gmm": ("gmm", {}),
}

Gradients = Callable[..., StepReport]


def surrogate(name: str) -> Defence:
    """A surrogate with its defaults."""
    kind, options = SURROGATES[name]
    return create_defence(kind, **options)


class Step:
    """A network at full width with its own weights, the same for everyone, under noise and perhaps a surrogate."""

    def __init__(
        self, penalised: Defence | None = None, gradients: Gradients = one_pass, crossing: dict | None = None
    ) -> None:
        torch.manual_seed(0)
        crosses = crossing or {"map": {"channels": 8}}
        network = split("vgg11_bn", shape=(3, 32, 32), classes=CLASSES, cut=4, crossing=crosses)
        self.model = network.to(memory_format=torch.channels_last).train()  # type: ignore[call-overload]
        self.x = torch.rand(BATCH, 3, 32, 32).to(memory_format=torch.channels_last)
        self.y = torch.randint(0, CLASSES, (BATCH,))
        self.guard = Guard(Noise(SIGMA), *([] if penalised is None else [penalised]))
        self.guard.setup(latent=self.model.latent_shape, classes=CLASSES, sigma=self.guard.sigma)
        self.guard.attach(self.model.encoder, None)
        self.recipe, self.gradients = RECIPES["modern"], gradients
        self.optimiser = self.recipe.optimiser(list(self.model.parameters()), own_parameters(self.guard))

    def __call__(self, *, watched: bool = False) -> StepReport:
        """Gradients, clipping, a step of the optimiser, and a look for the defence, as in `attcem.train.loop`."""
        for group in self.optimiser.param_groups:
            group["lr"] = self.recipe.rate(0.0)
        self.optimiser.zero_grad(set_to_none=True)
        given = {"watched": True} if watched else {}
        report = self.gradients(self.model, self.guard, self.x, self.y, lambda link: link.lam, **given)
        for group in self.optimiser.param_groups:
            torch.nn.utils.clip_grad_norm_(group["params"], self.recipe.clip)
        if report.lost_penalties or not math.isfinite(report.loss):
            raise ValueError("a step that is not finite is skipped, and costs less: this one measures nothing")
        self.optimiser.step()
        self.guard.observe(report.batch)
        return report

    @torch.no_grad()
    def latents(self, batches: int) -> Iterator[Batch]:
        """Clean latents in evaluation mode, computed as they are read."""
        self.model.eval()
        for _ in range(batches):
            yield Batch(self.x, self.y, self.model.encoder(self.x))
        self.model.train()


def two_passes(model: Split, guard: Guard, x: Tensor, y: Tensor, weight: Callable[[Defence], float]) -> StepReport:
    """As the original does it: penalty through the encoder, gradients put aside, then the task through everything."""
    z = model.encoder(x)
    (link,) = (link for link in guard.links if link.penalises)
    link.penalty(Batch(x, y, z)).backward(retain_graph=True)
    aside = {parameter: parameter.grad for parameter in model.encoder.parameters()}
    model.encoder.zero_grad(set_to_none=True)
    z.retain_grad()
    logits = model.decoder(guard.release(z))
    loss = F.cross_entropy(logits, y)
    loss.backward()
    for parameter, gradient in aside.items():
        parameter.grad.add_(gradient, alpha=weight(link))
    return StepReport(loss.detach(), (logits.detach().argmax(1) == y).sum(), Batch(x, y, z.detach()), z.grad)
