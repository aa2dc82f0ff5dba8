"""The audit: attack through the View, judge against the truth, keep everything per image."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from attcem.assess.finished import Finished, forget
from attcem.assess.judge import Judge
from attcem.assess.record import (
    SHOWN,
    costs,
    current_commit,
    describe_experiment,
    gallery,
    stacked,
    training_flags,
    versions,
)
from attcem.assess.stages import stages
from attcem.attacks import BASELINES, PROBED, PROBES, SUITES, VERSIONS, Attack, Reconstruction
from attcem.attacks.checks import Evidence, adequacy_flags, curves
from attcem.config import AuditConfig, with_options
from attcem.data import Data
from attcem.defences import Defence, Noise, describe
from attcem.metrics import Evaluator
from attcem.metrics.bounds import bounds
from attcem.models import Split
from attcem.naming import look_up
from attcem.progress import say
from attcem.threat import build_view, make_oracle, the_device
from attcem.train import evaluate
from attcem.types import GRANTS, Images, Result, Scores, Summary, View

__all__ = ["audit", "forget"]


def audit(
    model: Split,
    guard: Defence,
    data: Data,
    config: AuditConfig | None = None,
    *,
    experiment: dict[str, Any] | None = None,
    keep: str | Path | None = None,
    twin: Result | None = None,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Attack a trained split network with a suite, score every image, and say how much leaks at what accuracy.

    This is the only place that looks at `data.test`. `options` are fields of AuditConfig; `experiment` is the
    configuration to record, made from the arguments if not given. With a folder to `keep` finished attacks in, an
    interrupted audit goes on after them. `twin` is what the same audit found for the same network without defence.
    """
    config = with_options(config or AuditConfig(), options)
    suite, skipped = allowed(look_up("suite", config.suite, SUITES), look_up("threat model", config.threat, GRANTS))
    for name, why in skipped.items():
        say(f"{name}: skipped, {why}", shown=progress)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        _, accuracy = evaluate(model, guard, data.test)
        say(f"accuracy on released test latents {accuracy:.4f}", shown=progress)
        view, truth = build_view(model, guard, data, images=config.images, seed=config.seed, threat=config.threat)
        thorough = config.suite in PROBED
        judge = Judge(truth, evaluator_for(data, SEEN.get(config.suite, 160_000), progress))
        asking = replace(view, oracle=make_oracle(model, guard))
        guesses = {name: Reconstruction(guess(asking, truth.y)) for name, guess in BASELINES.items()}
        for name, guess in guesses.items():
            judge.score(name, guess.images)
        kept = Finished(None if keep is None else Path(keep), view, config.seed)
        guesses |= run_suite(suite, view, judge, kept, seed=config.seed, progress=progress)
        probes = run_probes(config, view, truth, data) if thorough else {}
        promised = promises(model, guard, data, twin) if thorough else {}
        by_stage = stages(model, guard, data, truth, seed=config.seed) if config.suite in STAGED else {}
    once = [name for name, attack in suite.items() if attack.observations == 1]
    worst, per_class = judge.worst(once), judge.per_class(data.class_names)
    record = model.record
    return Result(
        config=experiment or describe_experiment(model, guard, data, config),
        seed=config.seed if record is None else record.seed,
        accuracy=accuracy,
        attacks={name: judge.summary(name) for name in suite},
        worst=worst,
        baselines={name: judge.summary(name) for name in BASELINES},
        per_class=per_class,
        flags=adequacy_flags(
            Evidence(
                suite,
                guesses,
                judge.mean,
                accuracy=accuracy,
                classes=data.classes,
                undefended=all(name == "none" for name in describe(guard)),
                frozen=guard.sigma > 0 and torch.equal(view.resend(8), view.targets[:8]),  # type: ignore[misc]
                twin_psnr=None if twin is None else float(twin.worst.psnr),
            )
        )
        + below_the_floor(worst, promised)
        + training_flags(model, guard),
        bounds=promised,
        suite=VERSIONS.get(config.suite, config.suite),
        threat=config.threat,
        skipped=skipped,
        repeated=[name for name in suite if name not in once],
        probes=probes,
        curves=curves(suite, judge.mean) | ({"stages": by_stage} if by_stage else {}),
        risk=judge.risk(per_class),
        cost=costs(model, view.targets),
        history=[] if record is None else record.history,
        versions=versions(),
        commit=current_commit(),
        surrogate_only=max(record.surrogate_only.values(), default=None) if record else None,
        labels=[data.class_names[int(y)] for y in truth.y[:SHOWN]],
        gallery=gallery(truth, guesses),
        per_image=judge.per_image(),
        diagnostics=stacked(record.diagnostics) if record else {},
    )


def allowed(suite: dict[str, Attack], granted: frozenset[str]) -> tuple[dict[str, Attack], dict[str, str]]:
    """The attacks that can run under a threat model, and why the others cannot."""
    lacking = {name: sorted(attack.needs - granted) for name, attack in suite.items()}
    skipped = {name: f"it needs {' and '.join(lacks)}" for name, lacks in lacking.items() if lacks}
    able = {name: attack for name, attack in suite.items() if name not in skipped}
    if not any(attack.observations == 1 for attack in able.values()):
        raise ValueError("no attack of this suite can run under this threat model: choose --suite standard, or full")
    return able, skipped


def run_suite(
    suite: dict[str, Attack], view: View, judge: Judge, kept: Finished, *, seed: int, progress: bool
) -> dict[str, Reconstruction]:
    """Every attack in turn, with what it reached and the time left; finished ones are only read."""
    found: dict[str, Reconstruction] = {}
    spent, paid, left = 0.0, 0.0, sum(attack.effort for attack in suite.values())
    for number, (name, attack) in enumerate(suite.items(), start=1):
        say(f"attack {number} of {len(suite)}: {name}", shown=progress)
        started, before = time.perf_counter(), kept.find(name, attack)
        found[name] = before or attack(view, seed=seed, progress=progress)
        left -= attack.effort
        if before is None:
            kept.keep(name, attack, found[name])
            spent, paid = spent + time.perf_counter() - started, paid + attack.effort
        judge.score(name, found[name].images)
        ahead = f"; about {left * spent / paid / 60:.0f} min left" if paid and left else ""
        free = judge.mean("mean_image", first=len(found[name].images))
        say(f"{name}: MSE {judge.mean(name):.5f}  (mean image {free:.5f}){ahead}", shown=progress)
    return found


def run_probes(config: AuditConfig, view: View, truth: Images, data: Data) -> dict[str, dict[str, Any]]:
    """What can be told from the latents besides the picture, next to what a guess would tell."""
    gallery = truth[torch.randperm(len(truth), generator=torch.Generator().manual_seed(config.seed + 1))]
    told: dict[str, dict[str, Any]] = {}
    for name, probe in PROBES.items():
        if probe.needs - GRANTS[config.threat]:
            continue
        answers = probe(replace(view, gallery=gallery), seed=config.seed)
        scores = probe.score(answers, truth, gallery, data.public)
        chance = probe.chance(truth, gallery, data.public)
        told[name] = {
            metric: Summary.of(values.cpu().float().numpy()).to_json() | {"chance": float(chance[metric])}
            for metric, values in scores.items()
        }
    return told


STAGED = ("standard", "full")
"""Suites that also ask where the protection comes from."""

SEEN = {"smoke": 4_000, "glance": 10_000, "demo": 20_000}
"""Images that the evaluator is shown while it learns, where a suite has no time for more."""

_EVALUATORS: dict[str, Evaluator] = {}


def evaluator_for(data: Data, seen: int, progress: bool) -> Evaluator:
    """The independent judge of this data: trained once a process, on images that no attack is scored on."""
    known = f"{data.name} {data.draw} {len(data.private)} {seen}"
    if known not in _EVALUATORS:
        _EVALUATORS[known] = Evaluator.train(data.private, data.classes, seed=0, progress=progress, seen=seen)
    return _EVALUATORS[known]


def promises(model: Split, guard: Defence, data: Data, twin: Result | None) -> dict[str, Any]:
    """What theory says of any attack on this device, from its clean latents of the test images."""
    device = the_device(model, guard)
    pixels = data.test.pixels()
    with torch.no_grad():
        latents = torch.cat([device.encode(x).float().cpu() for x in pixels.split(256)])
    changes = [
        link for link in guard.links if type(link).release is not Defence.release and not isinstance(link, Noise)
    ]
    return bounds(
        latents,
        data.test.y,
        data.classes,
        guard.sigma,
        pixels,
        encode=lambda x: device.encode(x).float(),
        twin_rate=None if twin is None else twin.bounds.get("rate_nats"),
        not_counted=[type(link).__name__.lower() for link in changes if not isinstance(link, Noise)],
    )


def below_the_floor(worst: Scores, promised: dict[str, Any]) -> list[str]:
    """Says when an attack did better than an estimate of what any attack can do."""
    floor = promised.get("mse_floor_estimate")
    if floor is None or worst.mse >= floor:
        return []
    words = f"an attack (MSE {worst.mse:.4f}) went below the floor's estimate ({floor:.4f})"
    return [f"{words}: pictures have more structure than the estimate assumes, do not quote it"]
