"""The whole story on embedded data: what the cloud can rebuild without and with a defence."""

from pathlib import Path

from attcem.compare import comparison_tables
from attcem.config import AuditConfig, Experiment, ModelConfig, TrainConfig
from attcem.experiment import run, run_folder
from attcem.progress import say
from attcem.report import write_report
from attcem.types import Result

CONDENSED = {"pool": {"size": 2, "channels": 128, "condense": 64}}
TRAIN = TrainConfig(epochs=5, crop=2)
AUDIT = AuditConfig(suite="glance", images=500)

STORY: dict[str, tuple[dict | None, dict]] = {
    "undefended": (None, {}),
    "noise": (None, {"noise": {"sigma": 0.5}}),
    "condensed": (CONDENSED, {"noise": {"sigma": 0.1}}),
}
"""Name of a network → what crosses its cut, and its defence."""


def network(name: str, out: str | Path = "runs/demo", *, device: str = "auto") -> tuple[Result, Path]:
    """One network of the story, trained and attacked: its result and folder. What was interrupted goes on."""
    crossing, defence = STORY[name]
    model = ModelConfig(backbone="vgg11_bn", cut=4, width=0.25, crossing=crossing)
    experiment = Experiment(name=name, model=model, train=TRAIN, audit=AUDIT, defence=defence)
    return run(experiment.on(device), Path(out) / run_folder(experiment), resume=True)


def demo(out: str | Path = "runs/demo", *, device: str = "auto") -> Path:
    """Train, attack and report, network by network; an interrupted demo goes on where it was."""
    results, page = [], Path(out) / "report.html"
    for name in STORY:
        say("")
        say(f"{name}: training on Fashion-MNIST, then attacking what leaves the device")
        results.append(network(name, out, device=device)[0])
        write_report(results, page, comparison_tables(results))
        say(f"{name}: its pictures are on {page}")
    return page
