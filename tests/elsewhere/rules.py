"""The stand-in for a GPU allows what CUDA allows, refuses what CUDA refuses, and draws numbers of its own."""

import pytest
import torch

from tests.elsewhere.stand_in import ELSEWHERE, NAME, elsewhere

HERE = torch.arange(3.0)


@pytest.fixture(autouse=True)
def there():
    with elsewhere():
        yield torch.arange(3.0, device=NAME)


ALLOWED = {
    "a Python number": lambda x: x * 2.0,
    "a tensor without dimensions": lambda x: x * torch.tensor(2.0),
    "an index from here": lambda x: x[torch.tensor([0, 1])],
    "a mask from here": lambda x: x[torch.tensor([True, False, True])],
    "assignment of a number": lambda x: x.index_put_((torch.tensor([0]),), torch.tensor(7.0)),
    "a copy into it": lambda x: x.copy_(HERE),
    "a factory of its kind": lambda x: x + torch.randn_like(x) + x.new_ones(3) + torch.ones(3, device=x.device),
    "a tensor made from a list": lambda x: x + torch.tensor([1.0, 2.0, 3.0], device=x.device),
}
REFUSED = {
    "a tensor from here": lambda x: x + HERE,
    "an arange without device": lambda x: x + torch.arange(3),
    "a concatenation": lambda x: torch.cat([x, HERE]),
    "a number in a concatenation": lambda x: torch.stack([x.sum(), torch.tensor(1.0)]),
    "an index into something here": lambda x: HERE[x.long()],
    "index_select by something here": lambda x: x.index_select(0, torch.tensor([1])),
    "values from here": lambda x: x.index_put_((torch.tensor([0, 1]),), HERE[:2]),
    "a change of something here": lambda x: torch.tensor(1.0).add_(x.sum()),
    "a generator from here": lambda x: torch.rand(3, generator=torch.Generator(), device=x.device),
    "an array": lambda x: x.numpy(),
    "a product": lambda x: x[None] @ HERE[:, None],
    "a convolution": lambda x: torch.nn.Conv1d(1, 1, 1)(x[None, None]),
}


@pytest.mark.parametrize("what", ALLOWED)
def test_allows(what, there):
    assert ALLOWED[what](there).device == ELSEWHERE


@pytest.mark.parametrize("what", REFUSED)
def test_refuses(what, there):
    with pytest.raises(RuntimeError, match=r"one place|generator|subclasses"):
        REFUSED[what](there)


def test_only_a_copy_leads_out(there):
    assert there.cpu().is_cpu and there.tolist() == [0.0, 1.0, 2.0] and there.sum().item() == 3.0


def test_a_module_moves_as_a_whole_and_keeps_its_parameters(there):
    module = torch.nn.BatchNorm1d(3)
    weight = module.weight
    assert module.to(NAME).weight is weight and {t.device for t in module.state_dict().values()} == {ELSEWHERE}


def test_one_seed_is_for_both_places_and_a_fork_restores_both():
    torch.manual_seed(1)
    with torch.random.fork_rng():
        here, elsewhere = torch.rand(2), torch.rand(2, device=NAME)
    assert torch.equal(torch.rand(2), here) and torch.equal(torch.rand(2, device=NAME), elsewhere)


def test_gradients_are_those_of_the_cpu(there):
    cell, x = torch.nn.GRUCell(3, 4), torch.rand(2, 3)
    with torch.random.fork_rng():
        cell(x, torch.ones(2, 4)).square().sum().backward()
    expected = [parameter.grad for parameter in cell.parameters()]
    cell.zero_grad()
    moved = cell.to(NAME)
    moved(x.to(NAME), torch.ones(2, 4, device=NAME)).square().sum().backward()
    for parameter, gradient in zip(moved.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad.cpu(), gradient)
