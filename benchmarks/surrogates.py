"""What a surrogate costs: in a training step, with many classes, in parameters; and what one backward pass saves.

On one thread, in seconds of the processor: the same as on the clock of an idle machine, and other processes that take
turns on the core are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from attcem.defences import Bound, Defence, Gated, create_defence
from attcem.maths.kmeans import kmeans
from attcem.train.diagnostics import EVERY
from attcem.train.gradients import differentiate
from attcem.types import Batch
from benchmarks.harness import Figure, ratio
from benchmarks.step import BATCH, CLASSES, LATENT, PRIVATE, SIGMA, SURROGATES, Step, surrogate, two_passes

GOALS = {"gated": 1.05, "bound(diag)": 1.05, "slot": 1.10, "bound(slot)": 1.10, "hybrid": 1.10, "gmm": 1.15}
STEPS = 7
"""Rounds of what takes a second."""

REVIEWED = 10
"""Batches of a review that is timed."""

ITERS, TIMED_ITERS = 50, 4
"""Rounds of k-means at most, and in what is timed."""


def compare(numerator: Callable[[], object], denominator: Callable[[], object], rounds: int) -> float:
    return ratio(numerator, denominator, rounds, clock=time.process_time)


def figures() -> Iterator[Figure]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield from of_parameters()
        yield from of_classes()
        yield from of_loops()
        yield from of_steps()
    finally:
        torch.set_num_threads(threads)


def of_parameters() -> Iterator[Figure]:
    slot = create_defence("slot", tokens="spatial")
    slot.setup(latent=(512, 7, 7), classes=CLASSES, sigma=SIGMA)
    millions = sum(parameter.numel() for parameter in slot.parameters()) / 1e6
    yield Figure("surrogates: million slot parameters, latent 512×7×7", millions, 5, at_least=False)


def of_steps() -> Iterator[Figure]:
    plain = Step()
    for name, goal in GOALS.items():
        value = compare(Step(surrogate(name)), plain, STEPS)
        if name == "gmm":
            value += refit(plain)
        yield Figure(f"surrogates: step with {name} / without", value, goal, at_least=False)

    one, two = Step(surrogate("bound(diag)")), Step(surrogate("bound(diag)"), two_passes)
    check_same_gradients(one, two)
    yield Figure("surrogates: step in one pass / in two", compare(one, two, STEPS), 0.9, at_least=False)

    most_figures = Step(create_defence("slot", form="mixture", shut_off=False))
    watched = compare(lambda: most_figures(watched=True), most_figures, STEPS)
    spread = 1 + (watched - 1) / EVERY
    yield Figure(f"surrogates: one step in {EVERY} watched / none", spread, 1.02, at_least=False)


def refit(plain: Step) -> float:
    """A review at the epoch's end, spread over the epoch's steps, in plain steps.

    Encoder and sorting take as long for every image, so a few batches tell; k-means does not: more images need more
    rounds, and leave the cache. It is timed on an epoch of latents, and counted with all the rounds it may take.
    """
    fitted = Step(surrogate("gmm"))
    link = fitted.guard.links[-1]
    encoded = compare(lambda: link.review(fitted.latents(REVIEWED)), plain, STEPS) / REVIEWED
    z, y = torch.rand(PRIVATE, *LATENT).flatten(1), torch.randint(0, CLASSES, (PRIVATE,))
    few_rounds = compare(lambda: kmeans(z, y, CLASSES, start=link.mu, iters=TIMED_ITERS), plain, STEPS)
    # The last look at all latents costs another round.
    return encoded + few_rounds * (ITERS + 1) / (TIMED_ITERS + 1) * BATCH / PRIVATE


def check_same_gradients(one: Step, two: Step) -> None:
    for step in (one, two):
        torch.manual_seed(1)
        step()
    for mine, other in zip(one.model.parameters(), two.model.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-3, atol=1e-5)


def of_classes() -> Iterator[Figure]:
    for name in SURROGATES:
        value = compare(penalty(surrogate(name), 530), penalty(surrogate(name), 10), rounds=21)
        yield Figure(f"surrogates: time of {name}, 530 classes / 10", value, 1.5, at_least=False)


def of_loops() -> Iterator[Figure]:
    for ours, loop in ((create_defence("bound"), bound_by_loop), (create_defence("gated"), gated_by_loop)):
        vectorised = penalty(ours, 200)
        by_loop = penalty(ours, 200, partial(loop, ours))
        for mine, other in zip(vectorised(), by_loop(), strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-3, atol=1e-7)
        value = compare(vectorised, by_loop, rounds=15)
        yield Figure(f"surrogates: {ours.kind}, vectorised / loop over 200 classes", value, 0.2, at_least=False)


def penalty(
    defence: Defence, classes: int, value: Callable[[Batch], Tensor] | None = None
) -> Callable[[], tuple[Tensor, Tensor]]:
    """A penalty on 512 latents, its gradients, and what the defence does after the step.

    Of many classes each has two samples: of labels drawn at random a third would be alone, and cost nothing.
    """
    torch.manual_seed(0)
    z, y = torch.rand(512, *LATENT), torch.arange(512) % min(classes, 256)
    defence.setup(latent=LATENT, classes=classes, sigma=SIGMA)
    defence.review([Batch(z, y, z)])
    own = [parameter for parameter in defence.parameters() if parameter.requires_grad]

    def call() -> tuple[Tensor, Tensor]:
        leaf = z.detach().requires_grad_()
        batch = Batch(z, y, leaf)
        defence.zero_grad(set_to_none=True)
        found = (value or defence.penalty)(batch)
        gradient = differentiate(found, leaf, own)
        defence.observe(batch)
        return found.detach(), gradient

    return call


def bound_by_loop(bound: Bound, batch: Batch) -> Tensor:
    """The rate bound with one class after the other."""
    z, classes = batch.z.flatten(1), [c for c in batch.y.unique() if (batch.y == c).sum() >= 2]
    samples = sum(int((batch.y == c).sum()) for c in classes)
    total = z.new_zeros(())
    for c in classes:
        own = z[batch.y == c]
        share = len(own) / samples
        rate = 0.5 * torch.log1p(own.var(0, correction=0) / bound.sigma_n**2).sum()
        total = total + share * (rate - torch.tensor(share).log())
    return total / z.shape[1]


def gated_by_loop(gated: Gated, batch: Batch) -> Tensor:
    """The gated hinge with one class after the other."""
    z, classes = batch.z.flatten(1), [c for c in batch.y.unique() if (batch.y == c).sum() >= 2]
    total, samples = z.new_zeros(()), 0
    for c in classes:
        x = gated.norm(z[batch.y == c])
        alpha = gated.attention.logits(x).softmax(0).unsqueeze(1)
        mu = (alpha * x).sum(0)
        var = (alpha * (x - mu).square()).sum(0)
        threshold = torch.tensor(gated.var_threshold * gated.sigma_n**2 + gated.gamma)
        total = total + len(x) * F.relu((var + gated.gamma).log() - threshold.log()).mean()
        samples += len(x)
    return gated.loss_scale * total / samples
