"""The door for modules of one's own refuses what it cannot prove, and says why."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attcem.models import split
from tests.models.own import Residual, Scales, advised, images, plain, refusal


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
    assert Path(__file__).name in message
    assert "if x.sum() > 0:" in message
    assert "by hand" in message


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
        ("aside", "also needs 'conv'"),
        ("pair", "something other than one tensor"),
        ("size", "also needs"),
        ("attention", "also needs"),
        ("attention.out_proj", "inside 'attention'"),
        ("fc", "also needs"),
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


@pytest.mark.parametrize("at", ["", "x9"])
def test_a_name_that_does_not_exist_is_told_only_names_that_work(at):
    message = refusal(Odd(), at=at)
    assert message.endswith(f"has no submodule {at!r}: choose from: conv")


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
