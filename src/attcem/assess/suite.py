"""A suite in action: which attacks may run, each in turn, what else the latents tell, and at what stage."""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attcem.assess.judge import Judge
from attcem.assess.share import Finished
from attcem.attacks import Attack, Probe, Reconstruction
from attcem.config import GRANTS, AuditConfig
from attcem.data import Data
from attcem.defences import Guard
from attcem.metrics import METRICS
from attcem.metrics.stats import share_interval
from attcem.models import Split
from attcem.progress import say
from attcem.threat import the_device, view_through
from attcem.types import Device, Images, Summary, View


def allowed(attacks: Mapping[str, Attack], granted: frozenset[str]) -> tuple[dict[str, Attack], dict[str, str]]:
    """The attacks that can run under a threat model, and why the others cannot."""
    if not attacks:
        raise ValueError("there is nothing to attack with: choose another suite, or give attcem.audit(…, attacks=…)")
    lacking = {name: sorted(attack.needs - granted) for name, attack in attacks.items()}
    skipped = {name: f"it needs {' and '.join(lacks)}" for name, lacks in lacking.items() if lacks}
    able = {name: attack for name, attack in attacks.items() if name not in skipped}
    if not any(attack.observations == 1 for attack in able.values()):
        raise ValueError("no attack of this suite can run under this threat model: choose --suite standard, or full")
    return able, skipped


def run_attacks(
    attacks: Mapping[str, Attack], view: View, judge: Judge, kept: Finished, *, seed: int, progress: bool
) -> dict[str, Reconstruction]:
    """Every attack in turn, with what it reached and the time left; finished ones are only read."""
    found: dict[str, Reconstruction] = {}
    spent, paid, took, left = 0.0, 0.0, 0.0, sum(attack.effort for attack in attacks.values())
    for number, (name, attack) in enumerate(attacks.items(), start=1):
        say(f"attack {number} of {len(attacks)}: {name}", shown=progress)
        started, before = time.perf_counter(), kept.find(name, attack)
        found[name] = before or checked(name, attack(view, seed=seed, progress=progress), view)
        left -= attack.effort
        if before is not None:
            attack.recall(view, before, seed=seed)
        else:
            kept.keep(name, attack, found[name])
            took = time.perf_counter() - started
            spent, paid = spent + took, paid + attack.effort
        judge.score(name, found[name].images)
        after = "" if before else f" after {took:.0f} s"
        ahead = f"; about {left * spent / paid / 60:.0f} min left" if paid and number < len(attacks) else ""
        free = judge.mean("mean_image", first=len(found[name].images))
        say(f"{name}: MSE {judge.mean(name):.5f}  (mean image {free:.5f}){after}{ahead}", shown=progress)
    covered = max(len(found[name].images) for name, attack in attacks.items() if attack.observations == 1)
    if covered < len(view.targets):
        raise ValueError(
            f"no attack guesses more than {covered} of {len(view.targets)} images: audit with images={covered}, or "
            "beside a suite"
        )
    return found


def checked(name: str, found: Reconstruction, view: View) -> Reconstruction:
    shape, most = tuple(view.public[:1].pixels().shape[1:]), len(view.targets)
    if not isinstance(found, Reconstruction):
        raise ValueError(f"the attack {name} returned {type(found).__name__}: return attcem.Reconstruction(images)")
    images = found.images
    if tuple(images.shape[1:]) != shape or not 0 < len(images) <= most:
        raise ValueError(
            f"the attack {name} returned images of shape {tuple(images.shape)}: the first targets, at most {most}, "
            f"each as {shape}"
        )
    if not (images.isfinite().all() and images.min() >= 0 and images.max() <= 1):
        raise ValueError(f"the attack {name} returned values that are not in [0, 1]: clamp them")
    return found


def run_probes(
    probes: Mapping[str, Probe], config: AuditConfig, view: View, truth: Images, data: Data, progress: bool = False
) -> tuple[dict[str, dict[str, Any]], dict[str, np.ndarray]]:
    """What can be told from the latents besides the picture, next to what a guess would; and picture by picture."""
    gallery = truth[torch.randperm(len(truth), generator=torch.Generator().manual_seed(config.seed + 1))]
    told: dict[str, dict[str, Any]] = {}
    by_picture: dict[str, np.ndarray] = {}
    for name, probe in probes.items():
        if probe.needs - GRANTS[config.threat] - ({"people"} if view.people else set()):
            continue
        say(f"probe {name}", shown=progress)
        answers = probe(replace(view, gallery=gallery), seed=config.seed)
        scores = probe.score(answers, truth, gallery, data.public)
        chance, alike = probe.chance(truth, gallery, data.public), truth.y if "people" in probe.needs else None
        told[name] = {metric: beside_chance(values, chance[metric], alike) for metric, values in scores.items()}
        by_picture |= {f"probe {name}/{metric}": values.cpu().float().numpy() for metric, values in scores.items()}
    return told, by_picture


def beside_chance(right: Tensor, chance: float, alike: Tensor | None = None) -> dict[str, float]:
    """A share of right answers, its 95 % interval, where answers that belong together are `alike`, and chance."""
    values = right.cpu().float().numpy()
    low, high = share_interval(values, None if alike is None else alike.numpy())
    return Summary.of(values).to_json() | {"low": low, "high": high, "chance": float(chance)}


def stages(model: Split, guard: Guard) -> dict[str, Device]:
    """Where the protection may come from: what would be sent at every stage; only the last, `released`, is."""
    deployed, encoder, where = the_device(model, guard), model.encoder, next(model.parameters())
    devices = {"clean": Device(deployed.encode, Tensor.float), "released": deployed}
    names = [name for name, _ in encoder.named_children()]
    if "bottleneck" in names and isinstance(encoder, nn.Sequential):
        before = encoder[: names.index("bottleneck")]
        undefended = Device(lambda x: before(x.to(where.device, where.dtype)), Tensor.float)
        devices = {"before_bottleneck": undefended} | devices
    return devices


def guess_at(
    devices: Mapping[str, Device], attack: Attack, data: Data, truth: Images, seed: int, progress: bool = False
) -> dict[str, Tensor]:
    """What one attack makes of each of these devices, by name."""
    found = {}
    for name, device in devices.items():
        found[name] = attack(view_through(device, data.public, truth, frozenset({"queries"})), seed=seed).images.cpu()
        mse = METRICS["mse"](found[name], truth.pixels()).mean().item()
        say(f"one small decoder, {name.replace('_', ' ')}: MSE {mse:.5f}", shown=progress)
    return found
