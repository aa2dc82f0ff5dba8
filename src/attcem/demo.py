"""The whole story on embedded data: what the cloud can rebuild without and with a defence."""

from pathlib import Path

from attcem.compare import comparison_tables
from attcem.config import AuditConfig, Experiment, ModelConfig, TrainConfig
from attcem.experiment import run, run_folder
from attcem.progress import say
from attcem.report import write_report

CONDENSED = {"pool": {"size": 2, "channels": 128, "condense": 64}}
TRAIN = TrainConfig(epochs=5, crop=2)
AUDIT = AuditConfig(suite="glance", images=500)

STORY: dict[str, tuple[dict | None, dict]] = {
    "undefended": (None, {}),
    "noise": (None, {"noise": {"sigma": 0.5}}),
    "condensed": (CONDENSED, {"noise": {"sigma": 0.1}}),
}
"""Name of a network → what crosses its cut, and its defence."""


def demo(out: str | Path = "runs/demo", *, device: str = "auto") -> Path:
    """Train, attack and report, network by network; an interrupted demo goes on where it was."""
    results, page = [], Path(out) / "report.html"
    for name, (crossing, defence) in STORY.items():
        say("")
        say(f"{name}: training on Fashion-MNIST, then attacking what leaves the device")
        model = ModelConfig(backbone="vgg11_bn", cut=4, width=0.25, crossing=crossing)
        experiment = Experiment(name=name, model=model, train=TRAIN, audit=AUDIT, defence=defence)
        result, _ = run(experiment.on(device), Path(out) / run_folder(experiment), resume=True)
        results.append(result)
        write_report(results, page, comparison_tables(results))
        say(f"{name}: its pictures are on {page}")
    return page
