"""Recognition against a slow loop, and what ties and missing people count as."""

import pytest
import torch

from attcem.maths.recognition import blind, recognition


def test_agrees_with_a_loop_over_people():
    likeness, who = torch.randn(300, 8), torch.randint(8, (300,))
    found = recognition(likeness, who)
    wrong = sorted(float(likeness[i, p]) for i in range(300) for p in range(8) if p != who[i])
    allowed = wrong[-1 - int(0.01 * len(wrong))]
    for i, person in enumerate(who.tolist()):
        order = likeness[i].argsort(descending=True).tolist()
        assert found["person_top1"][i] == (order[0] == person)
        assert found["person_top5"][i] == (person in order[:5])
        assert found["person_verified"][i] == (likeness[i, person] > allowed)


def test_one_answer_for_all_is_chance_and_ties_name_nobody():
    who = torch.arange(100) % 10
    same = recognition(torch.randn(10).expand(100, 10), who)
    chance = blind(who)
    assert chance == pytest.approx({"person_top1": 0.1, "person_top5": 0.5, "person_verified": 0.01})
    assert all(same[name].mean() <= chance[name] + 1e-6 for name in chance)
    tied = recognition(torch.zeros(100, 10), who)
    assert all(values.sum() == 0 for values in tied.values())


def test_who_has_no_photos_is_never_recognised():
    likeness = torch.tensor([[1.0, -torch.inf, 0.0], [1.0, -torch.inf, 0.0]])
    found = recognition(likeness, torch.tensor([0, 1]))
    assert found["person_top1"].tolist() == [1, 0] and found["person_top5"].tolist() == [1, 0]
    assert found["person_verified"][1] == 0
