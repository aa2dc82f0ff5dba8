"""The door for modules of one's own tells what crosses a cut and which names give a clean one."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from attcem.models import split
from tests.models.own import Residual, advised, images, refusal


def test_inside_a_block_the_crossing_tensors_and_working_names_are_told():
    message = refusal(Residual(), at="layer2.0.conv1")
    assert "the rest of the network also needs" in message
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


@settings(max_examples=25)
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
