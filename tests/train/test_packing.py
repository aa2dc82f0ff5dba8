"""What an optimiser remembers must fit its parameters, whoever wrote the checkpoint."""

import pytest
import torch

from attcem.train.packing import pack, unpack_optimisers


def stepped() -> torch.optim.Adam:
    weight = torch.nn.Parameter(torch.ones(3))
    optimiser = torch.optim.Adam([weight])
    weight.sum().backward()
    optimiser.step()
    return optimiser


def test_what_was_packed_is_unpacked():
    first, other = stepped(), stepped()
    tensors, plain = pack({}, {"": first})
    tensors = {name: tensor + 1 for name, tensor in tensors.items()}
    unpack_optimisers({"": other}, tensors, plain)
    assert {name: t.tolist() for name, t in pack({}, {"": other})[0].items()} == {
        k: t.tolist() for k, t in tensors.items()
    }


@pytest.mark.parametrize("step", [torch.tensor(True), torch.tensor(-1.0), torch.ones(2)])
def test_steps_that_nobody_can_count_are_refused(step):
    optimiser = stepped()
    tensors, plain = pack({}, {"": optimiser})
    with pytest.raises(ValueError, match="does not fit this optimiser"):
        unpack_optimisers({"": optimiser}, tensors | {"optimiser.0.step": step}, plain)
