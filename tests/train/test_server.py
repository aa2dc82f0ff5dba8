"""The gap between gradients of one class and of several, against a loop."""

import math

import pytest
import torch
import torch.nn.functional as F

from attcem.train.server import gradient_flags, gradient_gap


def test_the_gap_is_that_of_a_loop():
    gradient, labels = torch.randn(9, 2, 3, generator=torch.Generator().manual_seed(0)), torch.arange(9) % 3
    same, other = [], []
    for i in range(9):
        for j in range(9):
            cosine = F.cosine_similarity(gradient[i].flatten(), gradient[j].flatten(), dim=0).item()
            if i != j:
                (same if labels[i] == labels[j] else other).append(cosine)
    assert gradient_gap(gradient, labels) == pytest.approx(sum(same) / len(same) - sum(other) / len(other), abs=1e-5)


def test_gradients_of_a_class_that_are_alike_have_the_widest_gap():
    labels = torch.arange(8) % 2
    assert gradient_gap((2.0 * labels - 1)[:, None] * torch.ones(8, 5), labels) == pytest.approx(2)
    assert math.isnan(gradient_gap(torch.ones(4, 5), torch.arange(4))), "nobody shares a class"


@pytest.mark.parametrize(
    ("gaps", "flagged"),
    [([0.02, 0.1], True), ([0.1, 0.4, 0.05], False), ([0.02], False), ([None, 0.05], True), ([], False)],
    ids=["never wide", "narrow once all is learned", "just begun", "drawn once", "no clients"],
)
def test_a_client_is_flagged_whose_gap_was_never_wide(gaps, flagged):
    history = [{} if gap is None else {"client_3/gradient_gap": gap, "loss": 0.0} for gap in gaps]
    flags = gradient_flags(history)
    assert bool(flags) == flagged and all(flag.startswith("client 3: ") for flag in flags)
