"""Top-k: exactly as many entries as asked for, the largest ones, ties included."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attcem.defences import TopK
from attcem.defences.topk import largest


@st.composite
def tied(draw):
    """Latents with few different values, so that ties are everywhere."""
    shape = draw(st.sampled_from([(1,), (7,), (3, 2, 2)]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 9999)))
    levels = draw(st.sampled_from([1, 3, 1000]))
    return torch.randint(-levels, levels + 1, (5, *shape), generator=generator).double() / levels


@settings(max_examples=80)
@given(z=tied(), keep=st.floats(0.01, 1.0))
def test_equal_to_choosing_one_after_another(z, keep):
    released = TopK(keep).release(z).flatten(1)
    mask = largest(z, keep).flatten(1)
    for row, chosen, out in zip(z.flatten(1).tolist(), mask.tolist(), released.tolist(), strict=True):
        left, expected = list(range(len(row))), []
        for _ in range(max(1, round(keep * len(row)))):
            expected.append(max(left, key=lambda i: (abs(row[i]), -i)))
            left.remove(expected[-1])
        assert [i for i, kept in enumerate(chosen) if kept] == sorted(expected)
        assert out == [value if i in expected else 0.0 for i, value in enumerate(row)]


@pytest.mark.parametrize("value", [0.0, 1.0, -2.0])
def test_exactly_k_are_kept_even_where_all_are_equal(value):
    mask = largest(torch.full((4, 8, 5, 5), value), 0.3)
    assert mask.flatten(1).sum(1).tolist() == [60] * 4
    assert torch.equal(mask.flatten(1).int().argmin(1), torch.full((4,), 60))  # the first ones


def test_one_entry_is_always_left():
    assert torch.equal(TopK(0.01).release(torch.tensor([[1.0, -3.0, 2.0]])), torch.tensor([[0.0, -3.0, 0.0]]))


def test_everything_may_be_kept():
    z = torch.randn(3, 4)
    assert torch.equal(TopK(1.0).release(z), z)


def test_the_gradient_passes_through_what_is_kept_only():
    z = torch.tensor([[0.5, -3.0, 0.1, 2.0]], requires_grad=True)
    (TopK(0.5).release(z) * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    assert z.grad.tolist() == [[0.0, 2.0, 0.0, 4.0]]


def test_one_sample_is_no_business_of_another():
    z = torch.randn(6, 3, 4, 4)
    alone = torch.cat([TopK(0.2).release(own) for own in z.split(1)])
    assert torch.equal(TopK(0.2).release(z), alone)


@pytest.mark.parametrize("keep", [0.0, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(keep):
    with pytest.raises(ValueError, match="share"):
        TopK(keep)
