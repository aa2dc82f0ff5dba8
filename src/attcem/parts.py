"""The parts of an experiment, made from its settings: data, clients, network and defence."""

from typing import Any

import torch

from attcem.config import Experiment
from attcem.configfile import usage_errors
from attcem.data import Data, load_data
from attcem.data.clients import deal_clients
from attcem.defences import Guard, build_defence
from attcem.models import Split, split
from attcem.types import Images


def load(experiment: Experiment) -> Data:
    return load_data(**vars(experiment.data))


def client_images(experiment: Experiment, data: Data) -> list[Images]:
    """The images of every client; empty if there is only one."""
    return deal_clients(data, experiment.clients) if experiment.clients.count > 1 else []


def make_model(experiment: Experiment, data: Data) -> Split:
    """The experiment's split network, with weights that depend only on its seed."""
    options = vars(experiment.model).copy()
    narrow = options.pop("bottleneck")
    with torch.random.fork_rng():
        torch.manual_seed(experiment.seed)
        return split(options.pop("backbone"), data=data, bottleneck=narrow and vars(narrow), **options)


def make_guard(experiment: Experiment) -> Guard:
    """The experiment's defence; a chain that cannot be built is wrong usage."""
    with usage_errors():
        return build_defence(experiment.defence)


def settings_with_draw(experiment: Experiment, data: Data) -> dict[str, Any]:
    """The settings as the result keeps them: with the draw that was made."""
    settings = experiment.to_dict()
    settings["data"]["draw"] = data.draw
    return settings
