"""What one process and two are both asked to do; `torchrun ... -m tests.train.pair OUT` lets two do it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attcem.config import ClientsConfig
from attcem.data import Data, load_data
from attcem.defences import DEFENCES, Chain, Defence, Noise, create_defence
from attcem.models import CROSSINGS, Split, split
from attcem.train import fit, fit_clients, honesty
from attcem.train.distributed import join
from attcem.train.gradients import one_pass
from attcem.train.honesty import surrogate_only
from attcem.train.team import Team
from attcem.types import Images
from tests.probes import Blank, Scaled

ROOT = Path(__file__).parents[2]
BATCH = 27
"""No two processes can halve it."""

TINY = {"channels": 4, "blocks": 1}
ADVERSARY = TINY | {"threshold": 0.0}
OPTIONS = {
    "gmm": {"clusters": 2, "warmup": 1},
    "gated": {"form": "gates", "tokens": "pooled", "warmup": 1},
    "slot": {"slots": 3, "warmup": 0},
    "bound": {"assign": "slot", "tokens": "spatial", "slots": 3, "memory": 0.9},
    "hybrid": {"deep": "bound", "warmup": 0},
    "pruning": {"warmup": 1},
    "transfer": {"rate": 0.5},
    "arl": ADVERSARY,
    "adversary": TINY,
    "adversarial_noise": {**ADVERSARY, "width": 4, "lam": 0.5},
}
"""What makes each defence busy within two epochs."""

SOME = ["noise", "gmm", "bound", "slot", "adversary", "fisher"]
"""Draws, clusters of all images, moments with a memory, an optimiser of its own, a gradient at the images."""

CLOCKS = {"seconds", "images_per_second", "penalty_share"}


@cache
def whole() -> Data:
    return load_data("fashion")


def few() -> Data:
    """Pictures with grain: where a flat region ties in max-pooling, rounding decides which pixel has the gradient."""
    private, validation = whole().private[::200][:60], whole().validation[::40][:33]
    grain = torch.randint(0, 40, private.x.shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    return replace(whole(), private=Images(private.x // 2 + grain, private.y.clone()), validation=validation)


def network(backbone: str = "vgg11_bn") -> Split:
    torch.manual_seed(0)
    return split(backbone, data=few(), cut=4, bottleneck=4, width=0.05)


def trained(guard: Defence, data: Data | None = None, model: Split | None = None, **options) -> dict[str, Tensor]:
    """All that a short float64 run leaves: curves, readings, and every tensor of network and guard."""
    honesty.surrogate_only = partial(surrogate_only, steps=8)
    model = model or network()
    given = {"epochs": 2, "batch": BATCH, "precision": "float64", "device": "cpu", "progress": False}
    state = fit(model, guard, data or few(), **given | options)
    rows = {f"epoch {row['epoch']}": [row[name] for name in sorted(row.keys() - CLOCKS)] for row in state.history}
    seen = {f"readings {n} {name}": value for n, each in enumerate(state.diagnostics) for name, value in each.items()}
    told = {"alone": list(state.surrogate_only.values()), "best": [state.best_epoch, state.best_accuracy]}
    curves = {name: torch.tensor(value, dtype=torch.float64) for name, value in (rows | seen | told).items()}
    return curves | {f"{type(m).__name__} {name}": t for m in (model, guard) for name, t in m.state_dict().items()}


def defended(name: str, source: Path) -> Chain:
    options = OPTIONS.get(name, {}) | ({"start_from": str(source)} if name == "transfer" else {})
    return Noise(0.1) + create_defence(name, **options)


def some_defences(folder: Path) -> dict[str, Tensor]:
    """A run under one defence of each way in which two processes have to agree."""
    return under(SOME, folder)


def other_defences(folder: Path) -> dict[str, Tensor]:
    """A run under each of the others; `transfer` starts from the one under dropout."""
    return under(sorted(DEFENCES.keys() - set(SOME), key=lambda name: name == "transfer"), folder)


def under(names: Sequence[str], folder: Path) -> dict[str, Tensor]:
    found = {}
    for name in names:
        out = folder / name
        for key, value in trained(defended(name, folder / "dropout"), out=out).items():
            found[f"{name}: {key}"] = value
    return found


def every_crossing(folder: Path) -> dict[str, Tensor]:
    """A run of each form of what crosses the cut, under noise, bound and an adversary."""
    found = {}
    for name in CROSSINGS:
        torch.manual_seed(0)
        small = {"channels": 4} if name in ("map", "pool", "vector") else {"tokens": 3, "width": 4}
        model = split("vgg11_bn", data=few(), cut=4, width=0.05, crossing={name: small | {"normalise": True}})
        guard = Noise(0.1) + create_defence("bound", warmup=1) + create_defence("adversary", **TINY)
        found |= {f"{name}: {key}": value for key, value in trained(guard, model=model, label_smoothing=0.1).items()}
    return found


class Wild(nn.Module):
    """A network of one's own, with all that looks across samples or draws for each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(1, 6, 3, 2, 1), nn.BatchNorm2d(6), nn.ReLU(True), nn.Dropout2d(0.3))
        self.second = nn.Sequential(nn.Conv2d(6, 5, 3, 2, 1), nn.BatchNorm2d(5, momentum=None), nn.Dropout(0.2))
        self.head = nn.Sequential(
            nn.Flatten(),
            nn.Linear(5 * 49, 8),
            nn.BatchNorm1d(8, affine=False, track_running_stats=False),
            nn.Dropout(0.5),
            nn.Linear(8, 4),
        )

    def halves(self) -> Split:
        return Split(nn.Sequential(self.first, self.second), self.head, latent_shape=(5, 7, 7), classes=4)


def stepping() -> tuple[Split, Chain, Tensor, Tensor]:
    """A network, a guard and a batch of 7."""
    torch.manual_seed(0)
    model = Wild().halves().double().to(memory_format=torch.channels_last).train()
    guard = Noise(0.3) + create_defence("bound") + create_defence("fisher")
    guard.setup(latent=(5, 7, 7), classes=4, sigma=0.3)
    x = torch.rand(7, 1, 28, 28, dtype=torch.float64).to(memory_format=torch.channels_last)
    return model, guard, x, torch.tensor([0, 1, 0, 1, 0, 2, 2])


def gradients(folder: Path, team: Team | None = None) -> dict[str, Tensor]:
    """Of one step, and what batch norms remember of it."""
    model, guard, x, y = stepping()
    team = team or join("cpu")
    with team.whole_batch(model):
        report = one_pass(model, guard, x, y, lambda link: 0.7, team)
    found = {name: p.grad for name, p in model.named_parameters()} | dict(model.named_buffers())
    return found | {"loss": report.loss, "bound": torch.tensor(report.penalties["bound"], dtype=torch.float64)}


class Fragile(nn.Module):
    """Passes latents on, but for that of a white picture: it is not a number."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, x: Tensor) -> Tensor:
        white = (x.flatten(1).mean(1) > 0.999)[:, None, None, None]
        return self.encoder(x).masked_fill(white, torch.nan)


def one_white_picture(folder: Path) -> dict[str, Tensor]:
    """Only one process ever meets it, as there is no batch norm to spread it."""
    data = few()
    data.private.x[11] = 255
    model = network("vgg11")
    model.encoder = Fragile(model.encoder)
    return trained(Noise(0.1) + Scaled(lam=0.1), data, model)


def blank(folder: Path) -> dict[str, Tensor]:
    return trained(Blank())


class Stops(Defence):
    """Ends a run from within, at its second epoch."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def observe(self, batch) -> None:
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


def kept(folder: Path, stops: int = 0, resume: bool = False) -> dict[str, Tensor]:
    """A run that is written down, and perhaps ends after so many batches."""
    guard = Noise(0.1) + create_defence("gmm", clusters=2) + Scaled(lam=0.1) + Stops(stops)
    return trained(guard, epochs=3, out=folder, resume=resume)


def begun(folder: Path) -> dict[str, Tensor]:
    try:
        kept(folder, stops=5)
    except KeyboardInterrupt:
        return {}
    raise AssertionError("it should have ended early")


def resumed(folder: Path) -> dict[str, Tensor]:
    return kept(folder.parent / "begun by one", resume=True)


def refused(folder: Path) -> dict[str, Tensor]:
    """What two processes say when they are asked for what they cannot do, as bytes."""
    rank, other = int(os.environ["RANK"]), few()
    other.private.y[3] = 0 if rank else other.private.y[3]
    asked: dict[str, Callable[[], object]] = {
        "seed": lambda: trained(Noise(0.1), seed=rank),
        "epochs": lambda: trained(Noise(0.1), epochs=2 + rank),
        "defence": lambda: trained(Noise(0.1 + rank)),
        "data": lambda: trained(Noise(0.1), other),
        "batch": lambda: trained(Noise(0.1), batch=1),
        "device": lambda: trained(Noise(0.1), device="cuda:0"),
        "clients": lambda: fit_clients(network(), Noise(0.1), few(), ClientsConfig(count=2)),
    }
    found = {}
    for name, ask in asked.items():
        try:
            ask()
        except ValueError as error:
            found[name] = torch.tensor(list(str(error).encode()), dtype=torch.uint8)
    return found


SCENARIOS: dict[str, Callable[[Path], dict[str, Tensor]]] = {
    each.__name__: each
    for each in (some_defences, every_crossing, gradients, one_white_picture, blank, begun, resumed, refused)
}
LONG = {"other_defences": other_defences}


def torchrun(*arguments: str, log: Path, **environment: str) -> int:
    """Let two processes do something; what they say goes to a file."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "127.0.0.1"]
    env = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"} | environment
    with log.open("w") as said:
        return subprocess.run(
            [*command, "--nproc-per-node", "2", *arguments], cwd=ROOT, env=env, stdout=said, stderr=said, timeout=1200
        ).returncode


def two(folder: Path, names: Collection[str] = SCENARIOS) -> list[dict[str, dict[str, Tensor]]]:
    """Let two processes go through scenarios: what each of the two found."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "said.txt"
    assert torchrun("-m", "tests.train.pair", str(folder), *names, log=log) == 0, log.read_text()
    return found_by_two(folder, names)


def found_by_two(folder: Path, names: Collection[str] = SCENARIOS) -> list[dict[str, dict[str, Tensor]]]:
    return [{name: load_file(folder / f"{name}.{rank}.safetensors") for name in names} for rank in range(2)]


def apart(ours: dict[str, Tensor], theirs: dict[str, Tensor], most: float = 1e-8) -> list[str]:
    """The names under which two results differ."""
    if ours.keys() != theirs.keys():
        return sorted(ours.keys() ^ theirs.keys())
    return [
        name
        for name in ours
        if not torch.allclose(ours[name].double(), theirs[name].double(), rtol=most, atol=most, equal_nan=True)
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    out = Path(sys.argv[1])
    for name in sys.argv[2:]:
        found = (SCENARIOS | LONG)[name](out / f"{name} by two")
        save_file({key: t.contiguous() for key, t in found.items()}, out / f"{name}.{os.environ['RANK']}.safetensors")
