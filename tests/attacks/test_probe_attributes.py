"""The attribute probe: all answers at once, each combination with a probability that comes true as often as it says."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from attcem.attacks.probe_attributes import AttributeProbe, combinations, describe, frequencies, place
from attcem.attacks.probe_property import Scores, questions, true_answers
from tests.conftest import noise_images


def test_every_combination_has_a_place_of_its_own():
    ways = combinations(4)
    assert len({tuple(way) for way in ways.tolist()}) == 16
    assert place(ways).tolist() == list(range(16))
    assert place(torch.tensor([[True, False, True, False]])).tolist() == [1 + 4]


def test_without_knowledge_it_says_how_often_a_combination_occurs():
    known = torch.tensor([[False, False]] * 50 + [[True, True]] * 30 + [[True, False]] * 15 + [[False, True]] * 5)
    blind = Scores(torch.zeros(3, 100, 2), known, torch.zeros(3, 4, 2))
    expected = torch.tensor([0.5, 0.15, 0.05, 0.3]).expand(4, -1)
    torch.testing.assert_close(describe(blind), expected, atol=2e-3, rtol=0)
    torch.testing.assert_close(frequencies(known), (expected[0] * 100 + 0.5) / 102)


def test_of_one_question_it_is_the_logistic_regression_of_scikit_learn():
    scores, targets = torch.randn(2, 300, 1), torch.randn(2, 20, 1)
    known = scores.sum(0) + torch.randn(300, 1) > 0.3
    model = LogisticRegression(C=1e4, tol=1e-8).fit(scores[..., 0].T.numpy(), known[:, 0].numpy())
    expected = torch.tensor(model.predict_proba(targets[..., 0].T.numpy())).float()
    torch.testing.assert_close(describe(Scores(scores, known, targets)), expected, atol=2e-3, rtol=0)


def test_probabilities_come_true_as_often_as_they_say_also_where_readers_repeat_each_other():
    """Three readers of one and the same noisy glance at three answers that hang together."""
    drawn = torch.randn(6000, 1) + 0.8 * torch.randn(6000, 3)
    answers, glance = drawn > 0, drawn + torch.randn(6000, 3)
    scores = torch.stack([glance, glance.tanh(), 5 * glance])
    told = describe(Scores(scores[:, :3000], answers[:3000], scores[:, 3000:]))
    sure, said = told.max(1)
    right = (said == place(answers[3000:])).float()
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1.0)):
        inside = (low < sure) & (sure <= high)
        assert inside.sum() > 100
        assert right[inside].mean() == pytest.approx(sure[inside].mean().item(), abs=0.06)


def test_it_is_scored_by_the_whole_description_and_by_its_certainty():
    images, probe = noise_images(40), AttributeProbe()
    true = place(true_answers(images, images))
    ways = 2 ** len(questions(images))
    certain, unsure = torch.eye(ways)[true], torch.full((40, ways), 1 / ways)
    for answers, right, quadratic in ((certain, 1.0, 1.0), (certain.roll(1, 1), 0.0, 0.0)):
        found = probe.score(answers, images, images, images)
        assert found["all_right"].unique().tolist() == [right]
        assert found["quadratic_score"].unique().tolist() == [quadratic]
    expected = 1 - ((1 - 1 / ways) ** 2 + (ways - 1) / ways**2) / 2
    torch.testing.assert_close(
        probe.score(unsure, images, images, images)["quadratic_score"], torch.full((40,), expected)
    )


def test_chance_is_what_the_most_common_combination_of_public_images_scores():
    public = noise_images(60)
    truth = noise_images(30, seed=1)
    common = frequencies(true_answers(public, public)).argmax()
    share = (place(true_answers(truth, public)) == common).float().mean().item()
    assert AttributeProbe().chance(truth, truth, public)["all_right"] == pytest.approx(share)
