"""The door for modules of one's own: what it cuts, what it proves, what it refuses and what it advises."""

import copy
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from attcem.models import split


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.conv2(self.relu(self.bn1(self.conv1(x))))
        return self.relu(out + x)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)
        self.layer1 = nn.Sequential(Block(), Block())
        self.layer2 = nn.Sequential(Block(), Block())
        self.drop = nn.Dropout(0.5)
        self.fc = nn.Linear(4, 5)
        self.unused = nn.Linear(2, 2)

    def forward(self, x, scale=2.0, mask=None):
        x = self.layer2(self.layer1(self.stem(x))) * scale
        x = x if mask is None else x * mask
        return self.fc(self.drop(x.mean((2, 3))))


def plain():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def images(n=2, side=8):
    return torch.rand(n, 3, side, side, generator=torch.Generator().manual_seed(0))


def advised(message):
    return re.search(r"these names give a clean cut: (.*)$", message).group(1).split(", ")


def refusal(module, at="layer", x=None, **options):
    with pytest.raises(ValueError) as error:
        split(module, at=at, example=images() if x is None else x, **options)
    return str(error.value)


@pytest.mark.parametrize("at", ["0", "1", "2", "3", "4"])
def test_a_plain_network_cuts_anywhere(at):
    module, x = plain().eval(), images()
    model = split(module, at=at, example=x)
    latent = module[: int(at) + 1](x.clone())
    assert torch.equal(model.encoder(x), latent)
    assert torch.equal(model(x), module(x))
    assert model.latent_shape == latent.shape[1:]
    assert model.classes == 5
    assert model.spec is None


@pytest.mark.parametrize("at", ["stem", "layer1", "layer1.0", "layer2.0", "layer2"])
def test_containers_and_leaves_of_a_residual_network(at):
    module, x = Residual().eval(), images()
    seen = []
    module.get_submodule(at).register_forward_hook(lambda _, __, output: seen.append(output.clone()))
    expected = module(x)
    model = split(module, at=at, example=x)
    assert torch.equal(model.encoder(x), seen[0])
    assert torch.equal(model(x), expected)
    assert torch.equal(model(images(5)), module(images(5)))


def test_inside_a_block_the_crossing_tensors_and_working_names_are_told():
    message = refusal(Residual(), at="layer2.0.conv1")
    assert "this crosses too" in message
    assert "'layer1.1.relu'" in message  # the shortcut comes out of the block before
    names = advised(message)
    assert {"stem", "layer1.0", "layer1", "layer2.0", "layer2", "drop"} <= set(names)
    assert not any("conv" in name for name in names)
    x = images()
    for name in names:
        module = Residual().eval()
        assert torch.equal(split(module, at=name, example=x)(x), module(x)), name


class InputSkip(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.last, self.fc = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Linear(3, 5)

    def forward(self, x):
        return self.fc((self.last(self.layer(x)) + x).mean((2, 3)))


def test_a_skip_from_the_input_crosses_every_cut():
    message = refusal(InputSkip())
    assert "the input 'x'" in message
    assert "no submodule of it gives a clean cut" in message


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.twice, self.fc = nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1), nn.Linear(3, 5)

    def forward(self, x):
        x = self.layer(self.twice(x))
        return self.fc(self.twice(x).mean((2, 3)))


def test_shared_modules_are_refused():
    assert "twice.weight" in refusal(Shared())
    assert "called 2 times" in refusal(Shared(), at="twice")


def test_tied_weights_are_refused():
    module = nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Conv2d(3, 3, 1), nn.Flatten(), nn.Linear(192, 5))
    module[2].weight = module[0].weight
    assert "same weights" in refusal(module, at="1")
    assert advised(refusal(module, at="1")) == ["2", "3"]


def test_a_module_without_state_may_serve_both_sides():
    relu, x = nn.ReLU(), images()
    module = nn.Sequential(nn.Conv2d(3, 3, 1), relu, nn.Conv2d(3, 3, 1), relu, nn.Flatten(), nn.Linear(192, 5))
    assert torch.equal(split(module, at="2", example=x).eval()(x), module.eval()(x))


class FunctionalDropout(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.fc = nn.Conv2d(3, 3, 1), nn.Linear(3, 5)

    def forward(self, x):
        return self.fc(F.dropout(self.layer(x).mean((2, 3)), 0.5, training=self.training))


class TrainingBranch(FunctionalDropout):
    def forward(self, x):
        x = self.layer(x)
        if self.training:
            x = x + torch.randn_like(x)
        return self.fc(x.mean((2, 3)))


@pytest.mark.parametrize(("kind", "node"), [(FunctionalDropout, "dropout"), (TrainingBranch, "randn_like")])
@pytest.mark.parametrize("training", [True, False])
def test_another_graph_in_training_is_refused(kind, node, training):
    message = refusal(kind().train(training))
    assert "nn.Dropout" in message
    assert f"'{node}'" in message


class Branching(FunctionalDropout):
    def forward(self, x):
        x = self.layer(x)
        if x.sum() > 0:
            x = -x
        return self.fc(x.mean((2, 3)))


def test_control_flow_is_refused_with_its_line():
    message = refusal(Branching())
    assert "test_own_split.py" in message
    assert "if x.sum() > 0:" in message
    assert "by hand" in message


class Scales(nn.Module):
    """Parameters and buffers that forward reads directly, before the cut, after it, or on both sides."""

    def __init__(self, before, after):
        super().__init__()
        self.layer, self.fc = nn.Conv2d(3, 3, 1), nn.Linear(3, 5)
        self.first, self.second = nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(3))
        self.register_buffer("mean", torch.rand(3))
        self.before, self.after = before, after

    def forward(self, x):
        one, two = getattr(self, self.before).view(-1, 1, 1), getattr(self, self.after).view(-1, 1, 1)
        x = self.layer(x * one) * two + torch.ones(1)
        return self.fc(x.mean((2, 3)))


@pytest.mark.parametrize("names", [("first", "second"), ("mean", "first"), ("mean", "mean")], ids=str)
def test_what_forward_reads_is_fetched_on_its_side(names):
    module, x = Scales(*names).eval(), images()
    attributes = set(vars(module))
    model = split(module, at="layer", example=x)
    assert torch.equal(model(x), module(x))
    assert not {id(p) for p in model.encoder.parameters()} & {id(p) for p in model.decoder.parameters()}
    assert {id(p) for p in model.parameters()} <= {id(p) for p in module.parameters()}
    storages = [tensor.data_ptr() for tensor in model.state_dict().values()]
    assert len(storages) == len(set(storages))
    assert set(vars(module)) == attributes


def test_a_parameter_read_on_both_sides_is_refused():
    message = refusal(Scales("first", "first"))
    assert "same weights" in message
    assert "first" in message


class Odd(nn.Module):
    """Submodules with answers that cannot be a latent."""

    class Pair(nn.Module):
        def forward(self, x):
            return x, x + 1

    class Size(nn.Module):
        def forward(self, x):
            return x.mean(0, keepdim=True)

    class Nothing(nn.Module):
        def forward(self, x):
            return x

    def __init__(self):
        super().__init__()
        self.nothing, self.identity, self.conv = self.Nothing(), nn.Identity(), nn.Conv2d(3, 3, 1)
        self.pair, self.size, self.aside = self.Pair(), self.Size(), nn.ReLU()
        self.attention = nn.MultiheadAttention(3, 1, batch_first=True)
        self.fc = nn.Linear(3, 5)

    def forward(self, x):
        x = self.conv(self.identity(self.nothing(x)))
        self.aside(x)
        x = self.pair(x)[1]
        tokens = x.flatten(2).transpose(1, 2)
        return self.fc(self.attention(tokens, tokens, tokens)[0].mean(1)) + self.size(x).sum()


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("nothing", "returns the input itself"),
        ("identity", "gives the input itself"),
        ("aside", "crosses too: 'conv'"),
        ("pair", "something other than one tensor"),
        ("size", "crosses too"),
        ("attention", "crosses too"),
        ("attention.out_proj", "inside 'attention'"),
        ("fc", "crosses too"),
        ("covn", "did you mean 'conv'?"),
    ],
)
def test_places_that_are_no_cut(at, words):
    message = refusal(Odd(), at=at)
    assert words in message
    assert at == "covn" or advised(message) == ["conv"]


def test_first_last_and_uncalled_places():
    assert "decoder would be empty" in refusal(Residual(), at="fc")
    assert "never calls it" in refusal(Residual(), at="unused")
    assert "called 2 times" in refusal(Residual(), at="layer1.0.relu")
    assert "no submodule ''" in refusal(Residual(), at="")


class Tuple(FunctionalDropout):
    def forward(self, x):
        return self.fc(self.layer(x).mean((2, 3))), x


class Random(FunctionalDropout):
    def forward(self, x):
        return self.fc(self.layer(x).mean((2, 3))) + torch.rand(1)


class Rest(FunctionalDropout):
    def forward(self, x, **rest):
        return self.fc(self.layer(x).mean((2, 3))) * rest.get("scale", 1)


def test_inputs_beside_the_first_are_refused_when_used():
    assert "forward takes x alone" in refusal(Rest())


def test_answers_that_are_no_logits():
    assert "returns a tuple" in refusal(Tuple())
    assert "(2, 3, 8, 8)" in refusal(nn.Sequential(nn.Conv2d(3, 3, 1), nn.ReLU()), at="0")
    assert "deterministic in eval mode" in refusal(Random())


@pytest.mark.parametrize("shape", [(3,), (0, 3, 8, 8), (3, 8, 8), (2, 1, 8, 8)], ids=str)
def test_example_must_be_a_batch_that_the_module_takes(shape):
    message = refusal(plain(), at="1", x=torch.rand(shape))
    assert "example must be a batch" in message


@pytest.mark.parametrize(
    "option", [{"activation": "sigmoid"}, {"bottleneck": 8}, {"width": 1.0}, {"cut": 2}, {"classes": 5}], ids=str
)
def test_options_of_the_other_door_are_refused(option):
    assert f"{next(iter(option))}=" in refusal(plain(), at="1", **option)


def test_at_and_example_are_required():
    for given_options in ({"at": "1"}, {"example": images()}, {}):
        with pytest.raises(ValueError, match="needs at="):
            split(plain(), **given_options)


@pytest.mark.parametrize("training", [True, False])
def test_mode_example_and_statistics_stay(training):
    module, x = nn.Sequential(nn.ReLU(inplace=True), *plain()).train(training), images() - 0.5
    module[2].eval()
    modes, kept, state = [m.training for m in module.modules()], x.clone(), copy.deepcopy(module.state_dict())
    model = split(module, at="3", example=x)
    assert [m.training for m in module.modules()] == modes
    assert torch.equal(x, kept)
    assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    assert model.training is model.encoder.training is model.decoder.training is training


@pytest.mark.parametrize("layer", [nn.ReLU(inplace=True), nn.Dropout(0.5, inplace=True)], ids=str)
def test_the_decoder_never_writes_into_the_latent(layer):
    """Otherwise a penalty on the clean latent would see what the cloud made of it."""
    module = nn.Sequential(nn.Conv2d(3, 4, 3), layer, nn.Flatten(), nn.Linear(144, 5))
    model = split(module, at="0", example=images()).train()
    latent = model.encoder(images()).detach().requires_grad_()
    kept = latent.detach().clone()
    model.decoder(latent).sum().backward()
    assert torch.equal(latent.detach(), kept)
    assert latent.grad is not None


def test_training_the_split_trains_the_module():
    module, x = Residual(), images(4)
    model = split(module, at="layer1", example=x)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), 0.1)
    F.cross_entropy(model(x), torch.arange(4)).backward()
    optimiser.step()
    changed = {name for name, p in module.named_parameters() if not torch.equal(p, before[name])}
    assert {"stem.weight", "layer1.0.conv1.weight", "layer2.1.conv2.weight", "fc.weight"} <= changed
    assert not any(name.startswith("unused") for name in changed)
    assert torch.equal(model.eval()(x), module.eval()(x))


def test_a_custom_split_copies_and_keeps_readable_state():
    model = split(Residual(), at="layer1", example=images()).eval()
    assert "encoder.layer1.0.conv1.weight" in model.state_dict()
    assert "decoder.layer2.0.bn1.running_mean" in model.state_dict()
    twin = copy.deepcopy(model)
    assert torch.equal(twin(images()), model(images()))
    twin.encoder.stem.weight.data.zero_()
    assert not torch.equal(twin(images()), model(images()))


class Drawn(nn.Module):
    """A random graph: node i applies its own layer to the sum of some earlier nodes; the last nodes are summed."""

    def __init__(self, sources):
        super().__init__()
        self.sources = sources
        self.nodes = nn.ModuleList(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in sources)
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        values, used = [x], set()
        for node, sources in zip(self.nodes, self.sources, strict=True):
            used |= sources
            values.append(node(sum(values[s] for s in sorted(sources))))
        return self.fc(sum(value for i, value in enumerate(values) if i not in used))


@st.composite
def drawn_sources(draw):
    size = draw(st.integers(1, 6))
    return [draw(st.one_of(st.just({i}), st.sets(st.integers(0, i), min_size=1, max_size=2))) for i in range(size)]


@settings(max_examples=25, deadline=None)
@given(drawn_sources())
def test_every_advised_name_cuts_and_no_other_is_clean(sources):
    torch.manual_seed(0)
    module, x = Drawn(sources).eval(), torch.rand(4, 3)
    text = refusal(module, at="fc", x=x)
    names = [] if "no submodule" in text else advised(text)
    for name in names:
        assert torch.equal(split(module, at=name, example=x)(x), module(x))
    last_use = {
        i: max([j for j, s in enumerate(sources) if i in s], default=len(sources)) for i in range(len(sources) + 1)
    }
    clean = {f"nodes.{k}" for k in range(len(sources)) if all(last_use[i] <= k for i in range(k + 1))}
    assert {name for name in names if name.count(".") == 1} == clean
