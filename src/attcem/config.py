"""What can be set, with types and defaults; nothing here needs torch, so that help is instant."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Literal, Self, TypeVar

from attcem.links import as_chain
from attcem.naming import check_name, check_options

C = TypeVar("C")

GRANTS: dict[str, frozenset[str]] = {
    "black_box": frozenset({"public", "labels", "logits"}),
    "query": frozenset({"public", "labels", "logits", "queries"}),
    "white_box": frozenset({"public", "labels", "logits", "queries", "weights", "gradients"}),
}
"""Threat model → what it grants the attacker; an attack that needs more is skipped."""


@dataclass(frozen=True)
class DataConfig:
    """Which images, and how they are dealt to the device's owner, the attacker and the audit.

    Args:
        name: A data set of `attcem list data`, imagefolder:PATH or npz:PATH.
        root: Where `attcem data get` put it; ATTCEM_DATA or ~/.cache/attcem if not given.
        seed: Seed of the draw.
        public: Share of the training images that the attacker owns.
        validation: Share of the private images that only select the best epoch.
        test: Share of all images kept for the audit, where the data set has no official test part.
        strangers: Deal whole classes, such as people: the attacker owns pictures of others than the device's.
    """

    name: str = "fashion"
    root: str | None = None
    seed: int = 0
    public: float = 0.25
    validation: float = 0.1
    test: float = 0.2
    strangers: bool = False


@dataclass(frozen=True)
class BottleneckConfig:
    """A narrow convolution as the device's last layer.

    Args:
        channels: Channels that leave the device.
        stride: Spatial reduction.
        kernel: Kernel size.
    """

    channels: int = 8
    stride: int = 1
    kernel: int = 3


@dataclass(frozen=True)
class ModelConfig:
    """The network and where it is cut.

    Args:
        backbone: A network of `attcem list backbones`.
        cut: Number of units on the device; the backbone's own default if not given.
        width: Factor on all channels; 0.25 makes CPU experiments ten times faster.
        bottleneck: Narrow layer at the cut (a mapping, or its number of channels); none if not given.
        crossing: What crosses the cut in its place, as in {attention: {tokens: 8, width: 64}}: `attcem list crossings`.
        activation: Activation at the cut; a bounded one keeps the network from outgrowing the noise.
    """

    backbone: str = "vgg11_bn"
    cut: int | None = None
    width: float = 1.0
    bottleneck: BottleneckConfig | int | None = None
    crossing: dict[str, Any] | str | None = None
    activation: Literal["none", "relu", "sigmoid", "tanh"] = "sigmoid"

    def __post_init__(self) -> None:
        if isinstance(self.bottleneck, int):
            object.__setattr__(self, "bottleneck", BottleneckConfig(self.bottleneck))
        if self.crossing is not None:
            object.__setattr__(self, "crossing", as_mapping(self.crossing))


@dataclass(frozen=True)
class TrainConfig:
    """How the split network is trained.

    Args:
        epochs: Passes over the private images.
        batch: Images per step.
        recipe: modern (one cycle, few epochs) or original (SGD with three drops, as published).
        lr: Learning rate; the recipe's own if not given.
        weight_decay: Weight decay; the recipe's own if not given.
        w_lr: Weigh penalties by 0.001/lr while lr is large; the recipe's own if not given.
        ramp: Epochs over which a penalty rises to its full weight after its warm-up.
        label_smoothing: Share of the target that is spread evenly over all classes; accuracy and losses of validation
            and audit stay those of the labels.
        start_from: Run folder whose weights to fine-tune.
        crop: Random shift in pixels.
        flip: Random horizontal flip.
        device: Where to compute: auto (a GPU if there is one), cpu, cuda, or cuda:1; also --device.
        precision: float32, float64, or bfloat16 (CUDA only).
        tensorboard: Also write TensorBoard events (needs the tensorboard extra).
    """

    epochs: int = 12
    batch: int = 128
    recipe: Literal["modern", "original"] = "modern"
    lr: float | None = None
    weight_decay: float | None = None
    w_lr: bool | None = None
    ramp: float = 0.0
    label_smoothing: float = 0.0
    start_from: str | None = None
    crop: int = 4
    flip: bool = True
    device: str = "auto"
    precision: Literal["float32", "float64", "bfloat16"] = "float32"
    tensorboard: bool = False

    def __post_init__(self) -> None:
        require(self.epochs >= 1, f"train.epochs must be at least 1, not {self.epochs}")
        require(self.batch >= 1, f"train.batch must be at least 1, not {self.batch}")
        require(not self.ramp < 0, f"train.ramp must be zero or positive, not {self.ramp}")
        require(self.lr is None or self.lr > 0, f"train.lr must be positive, not {self.lr}")
        share = f"train.label_smoothing must be a share from 0 to below 1, not {self.label_smoothing}: try 0.1"
        require(0 <= self.label_smoothing < 1, share)

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as written wherever training is recorded, without smoothing where there is none."""
        settings = dataclasses.asdict(self)
        if self.label_smoothing == 0:  # runs are called, and resumed, as they were before it could be set
            del settings["label_smoothing"]
        return settings


@dataclass(frozen=True)
class ClientsConfig:
    """Who owns the private images: one device, or several that train together (split federated training).

    Args:
        count: Number of clients; 1 is plain training, and all else here is then without effect.
        partition: iid (any image to any client) or dirichlet (the share of each class that a client owns is drawn).
        alpha: Concentration of that draw; the smaller, the less alike are the clients.
        sync: When the clients' encoders are averaged, after an epoch or a batch; shared is one encoder for all of them.
        sampled: Share of the clients that take part in an epoch, at least one of them.
        attacker: Number, from 0, of the client that attacks, with its own images as the public ones; none if not given.
    """

    count: int = 1
    partition: Literal["iid", "dirichlet"] = "iid"
    alpha: float = 0.5
    sync: Literal["epoch", "batch", "shared"] = "epoch"
    sampled: float = 1.0
    attacker: int | None = None

    def __post_init__(self) -> None:
        attacker, last = self.attacker, self.count - 1
        require(self.count >= 1, f"clients.count must be at least 1, not {self.count}")
        wide, share = 0.01 <= self.alpha < math.inf, 0 < self.sampled <= 1
        require(wide, f"clients.alpha must be at least 0.01, not {self.alpha}: try 0.5, or 100 for clients alike")
        require(share, f"clients.sampled must be a share above 0, at most 1, not {self.sampled}: try 0.5")
        if attacker is not None:
            require(last > 0, "clients.attacker needs somebody to attack: give clients.count of 2 or more")
            require(0 <= attacker <= last, f"clients.attacker={attacker} is no client: give one from 0 to {last}")


@dataclass(frozen=True)
class AuditConfig:
    """How hard the result is attacked.

    Args:
        suite: A suite of `attcem list suites`.
        threat: What the attacker has: black_box (the latents), query (may ask the device), white_box (its weights).
        images: Number of test images to reconstruct; accuracy is always on all of them.
        seed: Seed of the attacker.
    """

    suite: str = "quick"
    threat: Literal["black_box", "query", "white_box"] = "white_box"
    images: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        require(self.images >= 1, f"audit.images must be at least 1, not {self.images}")


@dataclass(frozen=True)
class Experiment:
    """One experiment: data, network, defence, training, clients and audit.

    Args:
        defence: List of links, each as {name: {option: value}}; a mapping name → options is read, too; empty for none.
        seed: Seed of weights, batches and noise.
        name: What to call it in tables and in the run's folder (a name, no path); made from the settings if not given.
    """

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    defence: list[Any] | dict[str, Any] = field(default_factory=list)
    train: TrainConfig = field(default_factory=TrainConfig)
    clients: ClientsConfig = field(default_factory=ClientsConfig)
    audit: AuditConfig = field(default_factory=AuditConfig)
    seed: int = 0
    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name(self.name)
        object.__setattr__(self, "defence", as_chain(self.defence))

    def on(self, device: str | None) -> Self:
        """The same experiment in another place; where it says itself, if none is given."""
        return self if device is None else dataclasses.replace(self, train=with_options(self.train, {"device": device}))

    def to_dict(self) -> dict[str, Any]:
        """Plain types, as written to config.yaml and result.json, without what is not used."""
        settings = dataclasses.asdict(self) | {"train": self.train.to_dict()}
        if self.clients.count == 1:  # the folder and file of such a run are those of before there were clients
            del settings["clients"]
        if self.model.crossing is None:
            del settings["model"]["crossing"]
        if not self.data.strangers:
            del settings["data"]["strangers"]
        return settings


def as_mapping(crossing: dict[str, Any] | str) -> dict[str, Any]:
    """One form for a name and for {name: options}.

    >>> as_mapping("vector"), as_mapping({"pool": None}), as_mapping({"pool": {"size": 2}})
    ({'vector': {}}, {'pool': {}}, {'pool': {'size': 2}})
    """
    return {crossing: {}} if isinstance(crossing, str) else {form: options or {} for form, options in crossing.items()}


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def with_options(config: C, options: dict[str, Any]) -> C:
    """A copy of a configuration with some fields replaced; a wrong name is an error that names the nearest."""
    check_options(type(config).__name__, options, [f.name for f in dataclasses.fields(config)])  # type: ignore[arg-type]
    return dataclasses.replace(config, **options)  # type: ignore[type-var]
