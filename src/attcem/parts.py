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
    return deal_clients(data, experiment.clients) if experiment.clients.count > 1 else []


def make_model(experiment: Experiment, data: Data) -> Split:
    options = vars(experiment.model).copy()
    narrow = options.pop("bottleneck")
    with torch.random.fork_rng():
        torch.manual_seed(experiment.seed)
        return split(options.pop("backbone"), data=data, bottleneck=narrow and vars(narrow), **options)


def make_guard(experiment: Experiment) -> Guard:
    with usage_errors():
        return build_defence(experiment.defence)


def settings_with_draw(experiment: Experiment, data: Data) -> dict[str, Any]:
    settings = experiment.to_dict()
    settings["data"]["draw"] = data.draw
    return settings
