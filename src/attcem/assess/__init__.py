"""The audit: attack through the View, judge against the truth, keep everything per image."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from attcem.assess import record
from attcem.assess.judge import Judge, evaluator_for
from attcem.assess.pieces import pieces, weigh
from attcem.assess.recognised import people_of, recognised
from attcem.assess.share import Finished, take_part
from attcem.assess.suite import allowed, guess_at, run_attacks, run_probes, stages
from attcem.attacks import BASELINES, SUITES, Attack, Reconstruction
from attcem.attacks.checks import Evidence, adequacy_flags
from attcem.attacks.pairs import unchanging
from attcem.attacks.variant import curves
from attcem.config import GRANTS, AuditConfig, with_options
from attcem.data import Data
from attcem.data.loader import in_order
from attcem.defences import Defence, Guard, describe
from attcem.metrics import METRICS
from attcem.models import Split
from attcem.naming import look_up
from attcem.progress import say
from attcem.threat import Oracle, build_view, make_oracle
from attcem.train import check_arguments, check_guard, check_network, evaluate
from attcem.types import Deployed, Embed, Images, Record, Result, Scores, View

FEWEST = 10  # public images without which no attack can learn and validate

__all__ = ["allowed", "audit", "observe", "take_part"]


def audit(
    model: Split,
    guard: Guard | Defence,
    data: Data,
    config: AuditConfig | None = None,
    *,
    attacks: Mapping[str, Attack] | None = None,
    experiment: dict[str, Any] | None = None,
    keep: str | Path | None = None,
    deployed: Deployed | None = None,
    embed: Embed | None = None,
    progress: bool = True,
    **options: Any,
) -> Result:
    """Attack a trained split network with a suite, score every image, and say how much leaks at what accuracy.

    This is the only place that looks at `data.test`. `attacks` of your own run beside those of the suite, or alone with
    suite="none". `options` are fields of AuditConfig; `experiment` is the configuration to record, made from the
    arguments if not given. With a folder to `keep` finished attacks in, an interrupted audit goes on after them.
    Attacks and evaluator work where the model lies; pictures are scored, and bounds computed, on the CPU. Where both
    halves are `deployed`, what they send is attacked, and their answers are counted. Where data has strangers,
    faces are compared by `embed`, pictures to vectors, or by an evaluator that learned to tell the strangers apart.
    """
    config, guard = with_options(config or AuditConfig(), options), check_arguments(model, guard, data)
    suite = look_up("suite", config.suite, SUITES).beside(attacks or {})
    able, skipped = allowed(suite.attacks, look_up("threat model", config.threat, GRANTS))
    some = check_network(model, data, data.public)
    check_guard(model, guard, some)
    if len(data.public) < FEWEST:
        raise ValueError(f"the attacker owns {len(data.public)} public images: give at least {FEWEST}, data.public")
    for name, why in skipped.items():
        say(f"{name}: skipped, {why}", shown=progress)
    with torch.random.fork_rng():
        accuracy, view, truth = observe(model, guard, data, config, deployed)
        say(f"accuracy on released test latents {accuracy:.4f}", shown=progress)
        people = people_of(data, embed, suite.seen, progress, view.targets.device)
        judge = Judge(truth, evaluator_for(data, suite.seen, progress, view.targets.device), people)
        asking = replace(view, oracle=Oracle(deployed.device) if deployed else make_oracle(model, guard))
        guesses = {name: Reconstruction(guess(asking, truth.y)) for name, guess in BASELINES.items()}
        for name, free in guesses.items():
            judge.score(name, free.images)
        finished = Finished(None if keep is None else Path(keep), view, config.seed)
        guesses |= run_attacks(able, view, judge, finished, seed=config.seed, progress=progress)
        probed = replace(view, people=people)
        probes, answered_right = run_probes(suite.probes, config, probed, truth, data, progress)
        promised = record.promises(model, guard, data) if suite.theory else {}
        by_stage: dict[str, float] = {}
        by_piece, telling = dict[str, Scores](), list[str]()
        if suite.yardstick:
            asked = suite.yardstick, data, truth, config.seed, progress
            at_stages = guess_at(stages(model, guard), *asked)
            by_stage = {name: METRICS["mse"](guess, judge.pixels).mean().item() for name, guess in at_stages.items()}
            if parts := guess_at(pieces(model, guard, data.public), *asked):
                by_piece, telling = weigh(judge, parts, at_stages["released"])
    once = [name for name, attack in able.items() if attack.observations == 1]
    probes |= recognised(judge, once)
    worst, per_class = judge.worst(once), judge.per_class(data.class_names)
    kept, training = record.shown(truth, judge.scores["worst"]["mse"]), model.record or Record(config.seed)
    errors, frozen = {name: found["mse"] for name, found in judge.scores.items()}, guard.sigma > 0 and unchanging(view)
    flags = adequacy_flags(Evidence(able, guesses, errors, accuracy, data.classes, not describe(guard), frozen))
    flags += record.below_the_floor(worst, promised) + record.training_flags(training, guard)
    return Result(
        config=experiment or record.describe_experiment(model, guard, data, config),
        seed=training.seed,
        accuracy=accuracy,
        attacks={name: judge.summary(name) for name in able},
        worst=worst,
        baselines={name: judge.summary(name) for name in BASELINES},
        per_class=per_class,
        flags=flags + telling + record.release_flags(guard, some),
        cost=training.cost | record.costs(model, data.public, view.targets),
        history=training.history,
        versions=record.versions(),
        commit=record.current_commit(),
        bounds=promised,
        suite=suite.version,
        strengths={name: link.strength for name, link in guard.named.items() if link.strength},
        threat=config.threat,
        skipped=skipped,
        repeated=[name for name in able if name not in once],
        probes=probes,
        curves=curves(able, judge.mean) | ({"stages": by_stage} if by_stage else {}),
        pieces=by_piece,
        risk=judge.risk(per_class),
        surrogate_only=max(training.surrogate_only.values(), default=None),
        labels=[data.class_names[int(y)] for y in truth.y[kept]],
        shown=kept,
        gallery=record.gallery(truth, guesses, judge.closest, kept),
        per_image=judge.per_image() | answered_right,
        diagnostics=record.stack_epochs(training.diagnostics),
    )


def observe(
    model: Split, guard: Guard, data: Data, config: AuditConfig, deployed: Deployed | None = None
) -> tuple[float, View, Images]:
    """Accuracy on released latents, what the attacker sees, and the truth: the same whenever it is asked."""
    torch.manual_seed(config.seed)
    accuracy = answered(deployed, data.test) if deployed else evaluate(model, guard, data.test)[1]
    asked: Any = {"images": config.images, "seed": config.seed, "threat": config.threat}
    return accuracy, *build_view(model, guard, data, **asked, deployed=deployed)


def answered(deployed: Deployed, images: Images) -> float:
    """Share of the images that the deployed halves classify rightly."""
    device, correct = deployed.device, 0
    for x, y in in_order(images):
        correct += int((deployed.cloud(device.release(device.encode(x))).argmax(1) == y).sum())
    return correct / len(images)
