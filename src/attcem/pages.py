"""Prepares what the page shows: an attacker of an artifact at all noises of the slider, and one of its twin."""

from __future__ import annotations

import base64
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from attcem.attacks import SUITES
from attcem.attacks.decoder import Decoder
from attcem.config import GRANTS, Experiment
from attcem.defences import Guard, Wire
from attcem.folders import read_experiment
from attcem.maths.similarity import structural_similarity
from attcem.models import Split
from attcem.parts import load, make_guard
from attcem.progress import say
from attcem.ship import Artifact, read_artifact
from attcem.ship.artifact import AUDIT, CLOUD, DEVICE, fingerprint, read_audit
from attcem.ship.budget import audited_budget
from attcem.ship.compact import compact
from attcem.ship.graphs import open_session, write_graph
from attcem.ship.halves import unpacked, wire_of
from attcem.ship.page import ATTACKER, DEFENDED, HALVES, PAGE, UNDEFENDED, Example, Leak, Page, Side, Stop
from attcem.ship.randomness import draw
from attcem.shipped import rebuild
from attcem.threat import view_through
from attcem.types import Device, Images, Result, Scores

SCALES = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
"""The slider's noise, in units of the artifact's own."""
EXAMPLES = 12
IMAGES = 500  # test pictures that means are taken over


@dataclass(frozen=True)
class Shipped:
    """An artifact with what it was exported from."""

    folder: Path
    artifact: Artifact
    audit: Result
    experiment: Experiment
    model: Split
    guard: Guard

    @classmethod
    def read(cls, folder: Path) -> Shipped:
        artifact = read_artifact(folder)
        audit = read_audit(folder, artifact)
        experiment = read_experiment(folder / AUDIT)
        return cls(folder, artifact, audit, experiment, *rebuild(folder, artifact, make_guard(experiment)))

    @property
    def scales(self) -> tuple[float, ...]:
        """The stops of its slider: one where it draws no Gaussian noise that could be scaled."""
        return SCALES if "normal" in self.guard.distributions.values() else (1.0,)

    @property
    def attacker(self) -> tuple[str, Decoder]:
        """The strongest decoder of its audit that works alone on one message, and its name."""
        suite = SUITES[self.experiment.audit.suite]
        alone = {name: each for name, each in suite.attacks.items() if isinstance(each, Decoder)}
        if not (found := {name: self.audit.attacks[name] for name in alone if name in self.audit.attacks}):
            raise ValueError(
                f"the audit of {self.folder} has no decoder: audit the run with --suite quick, and export it"
            )
        name = min(found, key=lambda name: found[name].mse)
        return name, alone[name]


def prepare_page(folder: Path, twin: Path, *, progress: bool = True) -> Path:
    """Write the page of an artifact, in its folder `page`: the twin's halves, both attackers, and what they achieve."""
    defended, undefended = Shipped.read(folder), Shipped.read(twin)
    check_twins(defended, undefended)
    data = load(defended.experiment)
    order = torch.randperm(len(data.test), generator=torch.Generator().manual_seed(defended.experiment.seed))
    judged = data.test[order[:IMAGES]]
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{PAGE}.") as made:
        place = Path(made) / PAGE
        place.mkdir()
        sides = {
            name: prepare_side(shipped, data.public, judged, place / name, progress)
            for name, shipped in ((DEFENDED, defended), (UNDEFENDED, undefended))
        }
        for half in HALVES:
            shutil.copyfile(twin / half, place / UNDEFENDED / half)
        files = {file.relative_to(place).as_posix(): fingerprint(file) for file in sorted(place.rglob("*.onnx"))}
        Page(
            shape=defended.artifact.picture.shape,
            classes=defended.artifact.picture.classes,
            defended=sides[DEFENDED],
            undefended=sides[UNDEFENDED],
            budget=audited_budget(defended.audit).picture,
            images=len(judged),
            mean_image=leak(defended.audit.baselines["mean_image"]),
            examples=examples(judged),
            files=files | {f"{DEFENDED}/{half}": defended.artifact.files[half] for half in HALVES},
        ).save(place)
        if (folder / PAGE).exists():
            shutil.rmtree(folder / PAGE)
        shutil.copytree(place, folder / PAGE)
    return folder / PAGE


def check_twins(defended: Shipped, undefended: Shipped) -> None:
    """Raise where two artifacts cannot be shown side by side."""
    if undefended.guard.links:
        raise ValueError(f"{undefended.folder} has a defence: give a twin that was trained without one")
    if defended.artifact.picture != undefended.artifact.picture:
        raise ValueError(f"{undefended.folder} takes other pictures than {defended.folder}: train it on the same data")
    drawn, twins = (replace(each.experiment.data, root=None) for each in (defended, undefended))
    if drawn != twins:
        raise ValueError(f"{undefended.folder} was trained on {twins}, {defended.folder} on {drawn}: they must agree")


def prepare_side(shipped: Shipped, public: Images, judged: Images, place: Path, progress: bool) -> Side:
    """Train the attacker of one network, write it, and measure it through the files that the page uses."""
    place.mkdir()
    name, decoder = shipped.attacker
    say(
        f"{place.name}: training the attacker {name} on public pictures and what the device sends of them",
        shown=progress,
    )
    network = train_attacker(shipped, decoder, public, judged, progress)
    example = torch.from_numpy(sent_of(shipped, judged[: min(3, len(judged))], 1.0))
    told = [torch.zeros(len(example), 1)] if len(shipped.scales) > 1 else []
    names = ["sent", "place"][: 1 + len(told)]
    write_graph(InPage(network, shipped), [example, *told], names, "picture", place / Path(ATTACKER).stem)
    (place / ATTACKER).with_suffix(".pt2").unlink()
    compact(place / ATTACKER)
    audit = shipped.audit
    return Side(
        defence=" + ".join(link.kind for link in shipped.guard.links),
        sigma=shipped.guard.sigma,
        randomness=shipped.artifact.randomness,
        wire=shipped.artifact.wire,
        accuracy=audit.accuracy,
        suite=audit.suite,
        worst=leak(audit.worst),
        attacker=name,
        audited=leak(audit.attacks[name]),
        stops=measure(shipped, place / ATTACKER, judged),
        own=shipped.scales.index(1.0),
    )


def train_attacker(shipped: Shipped, decoder: Decoder, public: Images, judged: Images, progress: bool) -> nn.Module:
    """The audit's decoder on what the device sends at every stop of the slider, of which it is told the place."""
    many = len(shipped.scales) > 1
    decoder = replace(decoder, doublings=decoder.doublings + 1) if many else decoder
    device = Device(shipped.model.encoder, lambda z: told_release(shipped.guard, shipped.scales, z))
    view = view_through(device, public, judged[:2], GRANTS["query"])
    return decoder.trained(view, 0, progress).network.eval()


def told_release(guard: Guard, scales: Sequence[float], z: Tensor) -> Tensor:
    """Each picture's release at a stop drawn for it alone, and behind it the place of that stop."""
    if len(scales) == 1:
        return guard.release(z)
    place = torch.randint(len(scales), (len(z),))
    scale = torch.tensor(scales)[place].reshape(-1, *[1] * (z.ndim - 1))
    drawn = guard.draw(z)
    noise = {name: drawn[name] * scale if law == "normal" else drawn[name] for name, law in guard.distributions.items()}
    return beside(guard.release(z, noise), place.float().unsqueeze(1))


def beside(released: Tensor, place: Tensor) -> Tensor:
    """A released vector, tokens or map with one more value, feature or channel: the place on the slider."""
    axis = 2 if released.ndim == 3 else 1
    shape = list(released.shape)
    shape[axis] = 1
    return torch.cat([released, place.reshape(-1, *[1] * (released.ndim - 1)).expand(shape)], axis)


class InPage(nn.Module):
    """What was sent, and the place on the slider if there is one → the picture that the attacker makes of it."""

    def __init__(self, network: nn.Module, shipped: Shipped) -> None:
        super().__init__()
        self.network, self.latent = network, shipped.model.latent_shape
        self.wire: Wire | None = wire_of(shipped.guard)

    def forward(self, sent: Tensor, *place: Tensor) -> Tensor:
        released = sent if self.wire is None else unpacked(self.wire, sent, self.latent)
        return self.network(beside(released, *place) if place else released).clamp(0, 1)


def sent_of(shipped: Shipped, images: Images, scale: float) -> np.ndarray:
    """What the shipped device sends of images, with its Gaussian noise at a scale."""
    noise = {
        each.name: draw(each.distribution, (len(images), *each.shape)) * (scale if each.distribution == "normal" else 1)
        for each in shipped.artifact.randomness
    }
    fed = {"image": images.pixels().contiguous().numpy()}
    fed |= {name: values.astype(np.float32) for name, values in noise.items()}
    return open_session(shipped.folder / DEVICE).run(None, fed)[0]


def measure(shipped: Shipped, attacker: Path, judged: Images) -> list[Stop]:
    """What the page's own files make of test pictures at every stop."""
    cloud, inverse, x = open_session(shipped.folder / CLOUD), open_session(attacker), judged.pixels()
    stops = []
    for place, scale in enumerate(shipped.scales):
        sent = sent_of(shipped, judged, scale)
        told = {"place": np.full((len(sent), 1), place, np.float32)} if len(shipped.scales) > 1 else {}
        rebuilt = torch.from_numpy(inverse.run(None, {"sent": sent} | told)[0])
        right = cloud.run(None, {"sent": sent})[0].argmax(1) == judged.y.numpy()
        mse, ssim = (rebuilt - x).square().mean(), structural_similarity(rebuilt, x).mean()
        stops.append(Stop(scale, Leak(mse.item(), ssim.item()), float(right.mean())))
    return stops


def leak(scores: Scores) -> Leak:
    return Leak(float(scores.mse), float(scores.ssim))


def examples(judged: Images) -> list[Example]:
    """The first picture of each class, as they come: none is chosen for what it shows."""
    labels = judged.y.tolist()
    first = [labels.index(label) for label in sorted(set(labels))][:EXAMPLES]
    pixels = (base64.b64encode(judged.x[place].numpy().tobytes()).decode() for place in first)
    return [Example(labels[place], each) for place, each in zip(first, pixels, strict=True)]
