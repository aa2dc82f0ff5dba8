"""The whole story on embedded data: what the cloud can rebuild without and with a defence."""

from pathlib import Path

from attcem.compare import comparison_tables
from attcem.config import AuditConfig, Experiment, ModelConfig, TrainConfig
from attcem.experiment import run, run_folder
from attcem.progress import say
from attcem.report import write_report

MODEL = ModelConfig(backbone="vgg11_bn", cut=4, width=0.25)
TRAIN = TrainConfig(epochs=5, crop=2)
AUDIT = AuditConfig(suite="glance", images=500)

STORY: dict[str, dict] = {
    "undefended": {},
    "noise": {"noise": {"sigma": 0.5}},
    "bound": {"noise": {"sigma": 0.3}, "bound": {"lam": 3.0, "warmup": 1}},
}
"""Name of a network → its defence."""


def demo(out: str | Path = "runs/demo", *, device: str = "auto") -> Path:
    """Train, attack and report, network by network; an interrupted demo goes on where it was."""
    results, page = [], Path(out) / "report.html"
    for name, defence in STORY.items():
        say("")
        say(f"{name}: training on Fashion-MNIST, then attacking what leaves the device")
        experiment = Experiment(name=name, model=MODEL, train=TRAIN, audit=AUDIT, defence=defence)
        result, _ = run(experiment.on(device), Path(out) / run_folder(experiment), resume=True)
        results.append(result)
        write_report(results, page, comparison_tables(results))
        say(f"{name}: its pictures are on {page}")
    return page
