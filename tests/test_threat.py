"""The attacker's view holds what it should, fresh at every query, and nothing else."""

import gc
import types
from typing import get_args, get_type_hints

import pytest
import torch
from torch import nn

from attcem.config import GRANTS, AuditConfig
from attcem.defences import Noise, Undefended
from attcem.threat import build_view
from attcem.types import Images, View
from tests.probes import Blank


def reachable(start, most=200_000):
    """Everything that attributes, items, closures and slots lead to; not through classes, modules or globals."""
    seen, queue = {}, [start]
    while queue and len(seen) < most:
        thing = queue.pop()
        if id(thing) in seen or isinstance(thing, type | types.ModuleType | types.BuiltinFunctionType):
            continue
        seen[id(thing)] = thing
        if isinstance(thing, types.FunctionType):
            queue.extend(cell.cell_contents for cell in thing.__closure__ or ())
            queue.extend(thing.__defaults__ or ())
        else:
            queue.extend(gc.get_referents(thing))
    return list(seen.values())


def test_neither_weights_nor_test_images_are_reachable(network, small):
    view, truth = build_view(network, Noise(0.1), small, images=50)
    found = reachable(view)
    assert not [thing for thing in found if isinstance(thing, nn.Module | nn.Parameter)]
    held = {tensor.data_ptr() for tensor in found if isinstance(tensor, torch.Tensor)}
    secret = [*network.state_dict().values(), truth.x, truth.y, small.test.x, small.private.x, small.validation.x]
    assert not held & {tensor.data_ptr() for tensor in secret}
    assert {id(view.public), id(view.oracle)} <= {id(thing) for thing in found}  # the walk does see things


def test_the_walk_would_find_a_leak(network, small):
    leaky = View(small.public, lambda x: network.encoder(x), torch.zeros(1, 8, 7, 7))
    assert [thing for thing in reachable(leaky) if isinstance(thing, nn.Module)]


def test_a_query_is_the_released_graph_with_fresh_noise(network, small):
    view, _ = build_view(network, Noise(0.3), small, images=10)
    x = small.public[:64].pixels()
    first, second = view.oracle(x), view.oracle(x)
    assert (first - second).std().item() == pytest.approx(0.3 * 2**0.5, rel=0.05)
    clean = network.eval().encoder(x)
    assert (first - clean).std().item() == pytest.approx(0.3, rel=0.05)
    assert not first.requires_grad


def test_targets_are_the_released_latents_of_the_seeded_choice(network, small):
    view, truth = build_view(network, Undefended(), small, images=30, seed=4)
    with torch.no_grad():
        torch.testing.assert_close(view.targets, network.eval().encoder(truth.pixels()))
    again = build_view(network, Undefended(), small, images=30, seed=4)[1]
    other = build_view(network, Undefended(), small, images=30, seed=5)[1]
    assert torch.equal(truth.x, again.x) and not torch.equal(truth.x, other.x)


def test_every_release_hook_reaches_the_attacker(network, small):
    view, _ = build_view(network, Blank(), small, images=10)
    assert not view.targets.any() and not view.oracle(small.public[:4].pixels()).any()


def test_a_device_that_releases_nan_is_not_audited(network, small):
    with pytest.raises(ValueError, match="not finite"):
        build_view(network, Noise(float("1e39")), small, images=5)


def test_the_device_goes_when_its_oracle_does(network, small):
    from attcem import threat

    gc.collect()
    before = len(threat._SEALED)
    view, _ = build_view(network, Undefended(), small, images=5)
    assert len(threat._SEALED) > before
    del view
    gc.collect()
    assert len(threat._SEALED) == before


def test_asking_for_more_images_than_there_are_gives_all(network, small):
    view, truth = build_view(network, Undefended(), small, images=10_000)
    assert isinstance(truth, Images) and len(view.targets) == len(truth) == len(small.test)


def test_the_configuration_offers_exactly_the_threat_models_there_are():
    assert get_args(get_type_hints(AuditConfig)["threat"]) == tuple(GRANTS)
