"""Every entry of CROSSINGS keeps the same contract, and computes what the equations say."""

import copy
import math
import subprocess
import sys
from dataclasses import fields

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attcem.models import build_split, split
from attcem.models.crossings import CROSSINGS, describe_crossing, read_crossing
from attcem.models.crossings.attention import AttentionPooling, SlotPooling

FEATURES = (6, 8, 8)
SMALL = {
    "map": {"channels": 4},
    "pool": {"size": 2, "channels": 5},
    "vector": {"channels": 12},
    "attention": {"tokens": 3, "width": 8},
    "slot": {"tokens": 3, "width": 8},
}
LATENTS = {"map": (4, 8, 8), "pool": (5, 2, 2), "vector": (12,), "attention": (3, 8), "slot": (3, 8)}
CLOUDS = ["backbone", "head"]


def network(name, cloud="backbone", **options):
    torch.manual_seed(0)
    crossing = {name: SMALL[name] | {"cloud": cloud} | options}
    return split("vgg11_bn", shape=(3, 32, 32), classes=7, cut=4, width=0.1, crossing=crossing)


@pytest.mark.parametrize("name", CROSSINGS)
class TestEveryCrossing:
    @pytest.mark.parametrize("cloud", CLOUDS)
    @pytest.mark.parametrize("normalise", [False, True])
    def test_both_halves_fit_together_and_learn(self, name, cloud, normalise):
        model = network(name, cloud, normalise=normalise)
        z = model.encoder(torch.rand(5, 3, 32, 32))
        assert tuple(z.shape[1:]) == model.latent_shape == LATENTS[name] and (z > 0).all() and (z < 1).all()
        model.decoder(z).square().sum().backward()
        for half in (model.encoder, model.decoder):
            assert all(p.grad is not None and p.grad.isfinite().all() for p in half.parameters())

    def test_it_names_its_equation(self, name):
        assert any(sign in CROSSINGS[name].equation for sign in "=←")

    @pytest.mark.parametrize("cloud", CLOUDS)
    def test_condensed_it_is_a_vector_of_so_many_values(self, name, cloud):
        model = network(name, cloud, condense=9)
        z = model.encoder(torch.rand(5, 3, 32, 32))
        assert tuple(z.shape[1:]) == model.latent_shape == (9,) and (z > 0).all() and (z < 1).all()
        model.decoder(z).square().sum().backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())

    @pytest.mark.parametrize("condense", [None, 9])
    def test_the_spec_rebuilds_it(self, name, condense):
        model = network(name, condense=condense)
        again = build_split(model.spec)
        again.load_state_dict(model.state_dict())
        x = torch.rand(2, 3, 32, 32)
        assert torch.equal(again.eval()(x), model.eval()(x)) and again.spec == model.spec

    def test_each_picture_crosses_by_itself(self, name):
        model, x = network(name).eval(), torch.rand(4, 3, 32, 32)
        torch.testing.assert_close(model.encoder(x)[1:2], model.encoder(x[1:2]))

    def test_what_it_is_described_by_makes_it_again(self, name):
        crossing = read_crossing({name: SMALL[name]})
        assert read_crossing(describe_crossing(crossing)) == crossing
        assert read_crossing(name) == CROSSINGS[name]()

    def test_normalised_it_fills_its_range(self, name):
        model = network(name, normalise=True)
        z = torch.logit(model.encoder(torch.rand(64, 3, 32, 32)).double())
        assert z.mean().abs() < 0.05 and 0.6 < z.std() < 1.1

    def test_wrong_options_are_refused_by_name(self, name):
        for option in fields(CROSSINGS[name]):
            if option.type in ("int", "int | None"):
                with pytest.raises(ValueError, match=option.name):
                    read_crossing({name: {option.name: 0}})
        with pytest.raises(ValueError, match="cloud must be backbone or head"):
            read_crossing({name: {"cloud": "both"}})
        with pytest.raises(ValueError, match="no option"):
            read_crossing({name: {"tokenz": 8}})

    def test_it_says_what_it_is(self, name):
        assert CROSSINGS[name].__doc__.splitlines()[0][-1] in ".:"


def test_both_halves_of_every_crossing_can_leave_python():
    """In a process of its own: the shapes that tests check in signatures would become constants of the graph."""
    made = subprocess.run([sys.executable, "-m", "tests.models.exported"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[-2000:]
    assert made.stdout.split() == [*CROSSINGS, "pool"]


@pytest.mark.parametrize("name", CROSSINGS)
@pytest.mark.parametrize("cloud", CLOUDS)
def test_one_is_put_between_the_halves_of_a_module_of_ones_own(name, cloud):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 6, 3, stride=4), nn.ReLU(), nn.Conv2d(6, 6, 3), nn.Flatten(), nn.LazyLinear(7))
    x = torch.rand(4, 3, 32, 32)
    module(x)
    model = split(module, at="1", example=x, crossing={name: SMALL[name] | {"cloud": cloud}})
    z = model.encoder(x)
    assert tuple(z.shape[1:]) == model.latent_shape and (z > 0).all() and (z < 1).all()
    assert model.decoder(z).shape == (4, 7)
    assert any(p is module[0].weight for p in model.encoder.parameters()), "the module shares its weights"


@pytest.mark.parametrize("name", ["map", "vector", "attention", "slot"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_tokens_of_a_transformer_are_places(name, cloud):
    options = SMALL[name] | {"cloud": cloud}
    model = split("vit", shape=(3, 32, 32), classes=7, width=0.1, crossing={name: options})
    z = model.encoder(torch.rand(4, 3, 32, 32))
    assert tuple(z.shape[1:]) == model.latent_shape and model.decoder(z).shape == (4, 7)
    if name != "map":
        assert model.latent_shape == LATENTS[name]


def test_a_vector_at_the_cut_has_no_places():
    module = nn.Sequential(nn.Flatten(), nn.Linear(12, 5), nn.Linear(5, 3))
    with pytest.raises(ValueError, match=r"vector at the cut.*cut earlier"):
        split(module, at="1", example=torch.rand(2, 3, 2, 2), crossing="vector")


def test_an_unknown_crossing_names_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'attention'"):
        read_crossing("atention")
    with pytest.raises(ValueError, match="one form with its options"):
        read_crossing({"pool": {}, "map": {}})


def test_a_bottleneck_is_a_map():
    torch.manual_seed(0)
    old = split("vgg11_bn", shape=(3, 32, 32), classes=7, cut=4, width=0.1, bottleneck=4)
    assert old.spec["crossing"] == describe_crossing(read_crossing({"map": {"channels": 4}}))
    with pytest.raises(ValueError, match="bottleneck= or crossing="):
        split("vgg11_bn", shape=(3, 32, 32), classes=7, bottleneck=4, crossing="pool")


def attention(*options):
    """A layer that looks somewhere: as it is made, it looks at all places alike."""
    layer = AttentionPooling((6, 4, 4), *options).double().eval()
    nn.init.normal_(layer.scores.w.weight)
    return layer


def slow_attention(layer, x):
    """Token by token, place by place."""
    values = layer.values(x)
    side = x.shape[2] // layer.grid
    tokens = []
    for top in range(0, x.shape[2], side):
        for left in range(0, x.shape[3], side):
            places = [(i, j) for i in range(top, top + side) for j in range(left, left + side)]
            for head in range(layer.scores.w.out_features):
                token = []
                for b in range(len(x)):
                    logits = []
                    for i, j in places:
                        key = layer.norm(x[b, :, i, j])
                        if layer.positions is not None:
                            key = key + layer.positions[i * x.shape[3] + j]
                        gated = torch.tanh(layer.scores.V(key)) * torch.sigmoid(layer.scores.U(key))
                        logits.append((layer.scores.w.weight[head] @ gated).item())
                    total = sum(math.exp(value) for value in logits)
                    token.append(
                        sum(math.exp(v) / total * values[b, :, i, j] for v, (i, j) in zip(logits, places, strict=True))
                    )
                tokens.append(torch.stack(token))
    return torch.stack(tokens, 1)


@settings(max_examples=8)
@given(grid=st.sampled_from([1, 2, 4]), positions=st.booleans(), tokens=st.integers(1, 3), seed=st.integers(0, 99))
def test_attention_equals_the_slow_loop(grid, positions, tokens, seed):
    torch.manual_seed(seed)
    layer = attention(tokens, 5, grid, positions)
    x = torch.randn(2, 6, 4, 4, dtype=torch.double)
    torch.testing.assert_close(layer(x), slow_attention(layer, x))


@settings(max_examples=10)
@given(seed=st.integers(0, 99))
def test_without_positions_attention_and_slots_do_not_see_where_anything_is(seed):
    torch.manual_seed(seed)
    x = torch.randn(2, 6, 4, 4, dtype=torch.double)
    moved = x.flatten(2)[..., torch.randperm(16)].view_as(x)
    for layer in (attention(3, 5, 1, False), SlotPooling((6, 4, 4), 3, 5, 2).double().eval()):
        torch.testing.assert_close(layer(moved), layer(x))
    located = attention(3, 5, 1, True)
    located.positions.data *= 100
    assert not torch.allclose(located(moved), located(x))


def test_weights_are_shares():
    x = torch.randn(2, 6, 4, 4, dtype=torch.double)
    for grid in (1, 2):
        weights = attention(3, 5, grid, False).weights(x)
        assert weights.shape == (2, grid**2, 3, 16 // grid**2)
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, grid**2, 3, dtype=torch.double))
    shares = SlotPooling((6, 4, 4), 3, 5, 2).double().eval().weights(x)
    torch.testing.assert_close(shares.sum(2), torch.ones(2, 1, 16, dtype=torch.double))


def test_attention_begins_as_means_over_its_regions():
    x = torch.randn(2, 6, 4, 4)
    layer = AttentionPooling((6, 4, 4), 1, 5, 2, False).eval()
    means = nn.functional.adaptive_avg_pool2d(layer.values(x), 2).flatten(2).transpose(1, 2)
    torch.testing.assert_close(layer(x), means)


def test_what_is_averaged_may_come_from_a_wider_convolution_on_fewer_places():
    torch.manual_seed(0)
    narrow = read_crossing({"pool": {"channels": 5, "kernel": 3, "stride": 2}}).narrow(FEATURES).eval()
    x = torch.randn(2, *FEATURES)
    seen = narrow[0](x)
    assert seen.shape == (2, 5, 4, 4)
    means = [seen[..., i : i + 2, j : j + 2].mean((2, 3)) for i in (0, 2) for j in (0, 2)]
    torch.testing.assert_close(narrow(x), torch.stack(means, 2).view(2, 5, 2, 2))
    with pytest.raises(ValueError, match="kernel must be odd, not 2: 3 keeps the size"):
        read_crossing({"pool": {"kernel": 2}})


@pytest.mark.parametrize("grid", [1, 2])
def test_maps_are_the_weights_at_their_places(grid):
    x = torch.randn(2, 6, 4, 4, dtype=torch.double)
    layer = attention(3, 5, grid, False)
    maps = layer.maps(x)
    assert maps.shape == (2, 3 * grid**2, 4, 4)
    values = layer.values(x)
    torch.testing.assert_close(torch.einsum("bnhw,bchw->bnc", maps, values), layer(x))
    slots = SlotPooling((6, 4, 4), 3, 5, 2).double().eval().maps(x)
    torch.testing.assert_close(slots.sum((2, 3)), torch.ones(2, 3, dtype=torch.double))


def test_a_grid_must_divide_the_map():
    with pytest.raises(ValueError, match="no 3×3 equal regions"):
        AttentionPooling((6, 8, 8), 3, 5, 3, False)


def test_pools_are_means_of_parts():
    narrow = copy.deepcopy(read_crossing({"pool": SMALL["pool"]}).narrow(FEATURES)).eval()
    x = torch.rand(2, *FEATURES)
    inner = narrow[0](x)
    torch.testing.assert_close(narrow(x)[:, :, 1, 0], inner[:, :, 4:, :4].mean((2, 3)))
    vector = read_crossing({"vector": SMALL["vector"]}).narrow(FEATURES).eval()
    torch.testing.assert_close(vector(x), vector[0](x).mean((2, 3)))
