"""Vision transformers of the libraries are cut between their blocks: tokens cross, and the halves are the module."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from attcem.models import split
from tests.models.own import refusal
from tests.models.transformers import SIZE, WIDTH, FusedAttention, HuggingFaceLike, TimmLike

X = torch.rand(3, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(0))


class Wrapped(nn.Module):
    """As the error advises."""

    def __init__(self):
        super().__init__()
        self.module = HuggingFaceLike(answer=lambda logits: SimpleNamespace(logits=logits))

    def forward(self, x):
        return self.module(x).logits


CUTS = {
    "timm": (TimmLike, "blocks.3"),
    "timm, after the patches": (TimmLike, "pos_drop"),
    "timm, fused attention": (lambda: TimmLike(FusedAttention), "blocks.0"),
    "Hugging Face": (HuggingFaceLike, "encoder.layer.1"),
    "Hugging Face, the embeddings": (HuggingFaceLike, "embeddings"),
    "Hugging Face, wrapped": (Wrapped, "module.encoder.layer.2"),
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("training", [True, False])
def test_tokens_cross_and_the_halves_are_the_module(name, training):
    make, at = CUTS[name]
    module = make().train(training)
    state = {key: value.clone() for key, value in module.state_dict().items()}
    model = split(module, at=at, example=X)
    assert model.latent_shape == (1 + (SIZE // 4) ** 2, WIDTH)
    assert model.classes == 7
    for x in (X, X[:1], torch.cat([X, X])):
        torch.manual_seed(0)
        expected = module(x)
        torch.manual_seed(0)
        assert torch.equal(model.decoder(model.encoder(x)), expected)
    assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    halves = [{id(p) for p in half.parameters()} for half in (model.encoder, model.decoder)]
    assert not halves[0] & halves[1]
    assert halves[0] | halves[1] == {id(p) for p in module.parameters()}


def test_an_answer_that_is_no_tensor_names_the_wrapper():
    message = refusal(HuggingFaceLike(answer=lambda logits: {"logits": logits}), at="encoder", x=X)
    assert "returns a dict: wrap it" in message
    assert ".logits" in message


def test_a_block_with_two_answers_says_which_names_work():
    module = HuggingFaceLike()
    module.encoder.layer[1].forward = lambda hidden_states, **_: (hidden_states * 2, hidden_states.mean())
    message = refusal(module, at="encoder.layer.1", x=X)
    assert "something other than one tensor" in message
    assert "encoder.layer.0" in message


class Asks(nn.Module):
    """Decides by what `question` finds out about its input."""

    def __init__(self, question):
        super().__init__()
        self.layer, self.norm, self.fc = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.Linear(3, 5)
        self.question = question

    def forward(self, x):
        x = self.layer(x) if self.question(self.norm(x)) else -self.layer(x)
        return self.fc(x.mean((2, 3)))


SHAPES = {
    "height": lambda x: x.shape[2] % 4 == 0,
    "number of axes": lambda x: x.dim() != 4 or x.ndim > 5,
    "size": lambda x: x.size(-1) * 2 >= x.size()[1],
}
REFUSED = {
    "how many": lambda x: x.shape[0] > 3,
    "all numbers": lambda x: x.numel() > 3 * 3 * SIZE**2,
    "values": lambda x: x.sum() > 0,
    "a value": lambda x: x.sum().item() > 0,
}


@pytest.mark.parametrize("question", SHAPES)
def test_a_forward_pass_may_decide_by_the_shape(question):
    module = Asks(SHAPES[question]).train()
    state = {key: value.clone() for key, value in module.state_dict().items()}
    model = split(module, at="layer", example=X)
    assert all(torch.equal(value, state[key]) for key, value in module.state_dict().items())
    assert torch.equal(model.eval()(X), module.eval()(X))


@pytest.mark.parametrize("question", REFUSED)
def test_but_not_by_values_or_their_number(question):
    assert "values of the input or on how many there are" in refusal(Asks(REFUSED[question]), x=X)
