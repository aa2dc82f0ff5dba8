"""How task and penalty reach the weights: one backward pass through the encoder."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int64
from torch import Tensor, nn

from attcem.defences import INPUT_GRADIENT, WEIGHTED, Defence, Guard, own_parameters
from attcem.models import Split
from attcem.train.diagnostics import gradient_readings
from attcem.train.server import HONEST, Server
from attcem.train.team import ALONE, Team
from attcem.types import Batch


@dataclass
class StepReport:
    """What one step saw."""

    loss: Float[Tensor, ""]
    correct: Int64[Tensor, ""]
    batch: Batch
    at_task: Tensor  # the gradient that came back from the cloud
    penalties: dict[str, float] = field(default_factory=dict)
    lost_penalties: int = 0
    penalty_seconds: float = 0.0
    readings: dict[str, Tensor] = field(default_factory=dict)
    """Figures of every penalty, under its name: value and weight, and more where the step was watched."""


def one_pass(
    model: Split,
    guard: Guard,
    x: Float[Tensor, "b c h w"],
    y: Int64[Tensor, " b"],
    weight: Callable[[Defence], float],
    team: Team = ALONE,
    *,
    progress: float = 0.0,
    watched: bool = False,
    label_smoothing: float = 0.0,
    server: Server = HONEST,
) -> StepReport:
    """Fill every gradient with `grad(task) + weight · grad(penalty)`, the encoder visited once.

    Task and penalties are differentiated to the latent, added there with their weights, and the sum is
    backpropagated once. A defence's own parameters get the unweighted gradient of its penalty, also while its weight
    is still 0; where they shape what is released, the task pulls at them, too, and they get the weighted one. A penalty
    of weight 0 from which nothing learns is not computed. Weights and values are read at every step, gradients where it
    is `watched`. A `team` shares the networks' work on the batch. A `server` may send another gradient than the task's.
    """
    if any(INPUT_GRADIENT in link.needs for link in guard.links):
        x = x.detach().requires_grad_()
    z = team.run_rows(model.encoder, x)
    leaf = z.detach().requires_grad_()
    released = guard.release(leaf)
    logits = team.run_rows(model.decoder, released)
    loss = F.cross_entropy(logits, y, label_smoothing=label_smoothing)
    server.answer(released, y, loss, model.decoder).backward()
    # a release that ignores the latent leaves no gradient at it.
    at_latent = torch.zeros_like(leaf) if leaf.grad is None else leaf.grad
    at_task, correct = at_latent, (logits.detach().argmax(1) == y).sum()
    report = StepReport(loss.detach(), correct, Batch(x.detach(), y, leaf.detach()), at_task)

    started = time.perf_counter()
    for name, link in guard.named.items():
        if not link.penalises:
            continue
        scale = weight(link)
        own_scale = scale if WEIGHTED in link.needs else 1.0
        report.readings[f"{name}/weight"] = told = torch.tensor(scale, dtype=torch.float64)  # also while it is 0
        report.readings["penalty_weight"] = report.readings.get("penalty_weight", 0.0) + told
        if scale == 0 and not (own_scale > 0 and own_parameters(link)):
            continue
        batch = Batch(x, y, z if INPUT_GRADIENT in link.needs else leaf, progress, watched)
        penalty = link.penalty(batch)
        report.lost_penalties += batch.readings.pop("lost", None) is not None
        gradient = pull(link, penalty, leaf, model.encoder, scale, own_scale)
        if scale > 0:
            report.penalties[name] = float(penalty.detach())
            at_latent = at_latent + scale * gradient
        seen = batch.readings | {"penalty": penalty.detach()}
        if watched:
            seen |= gradient_readings(at_task, scale * gradient)
        report.readings |= {f"{name}/{figure}": value for figure, value in seen.items()}
    report.penalty_seconds = time.perf_counter() - started

    if z.requires_grad:  # not where the encoder is frozen
        z.backward(at_latent)
    team.sum_gradients(model.parameters(), own_parameters(guard))
    return report


def pull(
    link: Defence, penalty: Float[Tensor, ""], leaf: Tensor, encoder: nn.Module, scale: float, own_scale: float
) -> Tensor:
    """Gradient of a link's penalty at the latent; one through the encoder goes to its weights instead."""
    if INPUT_GRADIENT not in link.needs:
        return differentiate(penalty, leaf, own_parameters(link), own_scale)
    weights = [weight for weight in encoder.parameters() if weight.requires_grad]
    if penalty.requires_grad and weights:  # the graph is kept for the task
        add_gradients(weights, torch.autograd.grad(penalty, weights, retain_graph=True, allow_unused=True), scale)
    return torch.zeros_like(leaf)


def differentiate(penalty: Float[Tensor, ""], leaf: Tensor, own: list[nn.Parameter], own_scale: float = 1.0) -> Tensor:
    """Gradient of a penalty at the latent; the defence's own parameters receive theirs, scaled, on the way."""
    if not penalty.requires_grad:
        return torch.zeros_like(leaf)
    at_latent, *at_own = torch.autograd.grad(penalty, [leaf, *own], allow_unused=True)
    add_gradients(own, at_own, own_scale)
    return torch.zeros_like(leaf) if at_latent is None else at_latent


def add_gradients(parameters: Sequence[nn.Parameter], gradients: Sequence[Tensor | None], scale: float) -> None:
    for parameter, gradient in zip(parameters, gradients, strict=True):
        if gradient is not None:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            parameter.grad.add_(gradient, alpha=scale)
