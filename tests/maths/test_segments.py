"""Segment operations against one class at a time."""

import torch
from hypothesis import given, settings

from attcem.maths import segment_count, segment_softmax, segment_sum
from tests.maths.draws import batches


@settings(max_examples=40)
@given(batch=batches())
def test_sum_count_and_softmax_equal_a_loop_over_classes(batch):
    x, _, y, classes = batch
    sums, counts, weights = segment_sum(x, y, classes), segment_count(y, classes), segment_softmax(x, y, classes)
    for c in range(classes):
        torch.testing.assert_close(sums[c], x[y == c].sum(0), atol=1e-9, rtol=1e-9)
        assert counts[c] == (y == c).sum()
        torch.testing.assert_close(weights[y == c], x[y == c].softmax(0), atol=1e-9, rtol=1e-9)


def test_softmax_survives_logits_that_overflow_alone():
    logits, y = torch.tensor([1e4, 1e4 - 1, -1e30, -1e30]), torch.tensor([0, 0, 2, 2])
    weights = segment_softmax(logits, y, 3)
    torch.testing.assert_close(weights, torch.tensor([0.731058, 0.268941, 0.5, 0.5]))


def test_softmax_gradient():
    logits = torch.randn(6, 2, dtype=torch.double, requires_grad=True)
    y = torch.tensor([0, 3, 3, 0, 1, 3])
    assert torch.autograd.gradcheck(lambda logits: segment_softmax(logits, y, 4), logits)
