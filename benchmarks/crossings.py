"""What a crossing costs next to the map: a training step, one picture on the device, and what the device computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from attcem.defences import Guard, Noise
from attcem.metrics.cost import multiplications
from attcem.models import split
from attcem.ship.graphs import open_session, write_graph
from attcem.ship.halves import DeviceHalf
from benchmarks.harness import Figure, ratio
from benchmarks.step import Step

FORMS: dict[str, dict] = {
    "pool": {"pool": {}},
    "pool, condensed": {"pool": {"condense": 64}},
    "attention": {"attention": {}},
    "attention, condensed": {"attention": {"condense": 64}},
    "attention of quarters, condensed": {"attention": {"grid": 2, "tokens": 1, "width": 128, "condense": 64}},
    "slot": {"slot": {}},
}
MAP: dict = {"map": {"channels": 8}}
GOALS = {"step": 1.10, "latency": 1.10, "compute": 1.15}


def device(crossing: dict, width: float) -> torch.nn.Module:
    torch.manual_seed(0)
    return split("vgg11_bn", shape=(3, 32, 32), classes=10, cut=4, width=width, crossing=crossing).encoder.eval()


def compute(crossing: dict, width: float) -> float:
    return multiplications(device(crossing, width), torch.rand(1, 3, 32, 32))


@torch.no_grad()
def latency(crossing: dict, width: float) -> float:
    """One picture at a time in PyTorch, twenty in a row, against the map."""
    x, here, there = torch.rand(1, 3, 32, 32), device(crossing, width), device(MAP, width)
    return ratio(lambda: [here(x) for _ in range(20)], lambda: [there(x) for _ in range(20)], rounds=31)


def shipped(crossing: dict, width: float) -> Callable[[], object]:
    """The device's half as it is shipped, noise included, twenty pictures in a row, one at a time."""
    torch.manual_seed(0)
    model = split("vgg11_bn", shape=(3, 32, 32), classes=10, cut=4, width=width, crossing=crossing).eval()
    guard = Guard(Noise(0.1))
    inputs = [torch.rand(2, 3, 32, 32), torch.randn(2, *model.latent_shape)]
    with TemporaryDirectory() as folder:
        write_graph(DeviceHalf(model, guard), inputs, ["image", "noise"], "sent", Path(folder) / "device")
        session = open_session(Path(folder) / "device.onnx")
    given = {"image": inputs[0][:1].numpy(), "noise": inputs[1][:1].numpy()}
    return lambda: [session.run(None, given) for _ in range(20)]


def figures() -> Iterator[Figure]:
    """Full width for step and latency, and a quarter of it, where a crossing weighs more."""
    for name, crossing in FORMS.items():
        goals = GOALS if name.startswith("attention") else {}
        step = ratio(Step(crossing=crossing), Step())
        yield Figure(f"training step, {name} / map", step, goals.get("step"), at_least=False)
        for width in (1.0, 0.25):
            found = latency(crossing, width)
            yield Figure(
                f"device latency in PyTorch at width {width:g}, {name} / map", found, goals.get("latency"), False
            )
            found = ratio(shipped(crossing, width), shipped(MAP, width), rounds=31)
            yield Figure(
                f"device latency as shipped at width {width:g}, {name} / map", found, goals.get("latency"), False
            )
            more = compute(crossing, width) / compute(MAP, width)
            yield Figure(f"device compute at width {width:g}, {name} / map", more, GOALS["compute"], at_least=False)


if __name__ == "__main__":
    for figure in figures():
        print(figure, flush=True)
