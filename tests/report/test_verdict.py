import math

import pytest

from attcem.report.promises import probes_table
from attcem.report.verdict import Kind, flag_line, verdicts
from attcem.runs import settings_of

from .made import described, make_result

NOISE = {"noise": {"sigma": 0.5}}


def only_judgement(*results):
    (verdict,) = verdicts(settings_of(results))
    (judgement,) = verdict.judgements
    return judgement


@pytest.mark.parametrize(
    ("mse", "accuracy", "kind"),
    [
        (0.070, 0.861, Kind.HIDES_MOST),
        (0.030, 0.861, Kind.HIDES_SOME),
        (0.0043, 0.888, Kind.NOTHING),
        (0.002, 0.888, Kind.NOTHING),
        (0.075, 0.780, Kind.COLLAPSED),
        (0.004, 0.110, Kind.COLLAPSED),
        (math.nan, 0.861, Kind.UNMEASURED),
    ],
)
def test_a_defence_is_called_what_it_is(mse, accuracy, kind):
    assert only_judgement(make_result(), make_result(mse=mse, accuracy=accuracy, defence=NOISE)).kind is kind


def test_the_words_carry_the_numbers():
    (verdict,) = verdicts(settings_of([make_result(), make_result(mse=0.0231, accuracy=0.861, defence=NOISE)]))
    for piece in ("rebuilds the pictures", "88.9\xa0% accuracy", "the best of 2 attacks", "SSIM\xa00.600", "95\xa0%"):
        assert piece in verdict.opening
    for piece in ("At 86.1\xa0% accuracy instead of 88.9\xa0%", "SSIM\xa00.600; undefended 0.600", "0.0231", "71\xa0%"):
        assert piece in verdict.judgements[0].sentence


def test_a_collapsed_classifier_is_no_defence():
    sentence = only_judgement(make_result(), make_result(mse=0.08, accuracy=0.25, defence=NOISE)).sentence
    assert "64\xa0points" in sentence
    assert "a defence at 25\xa0% accuracy" in sentence
    assert "is no defence" in sentence


def test_near_chance_needs_no_reference():
    assert only_judgement(make_result(accuracy=0.12, defence=NOISE)).kind is Kind.COLLAPSED


def test_a_small_loss_of_accuracy_is_not_a_collapse():
    assert only_judgement(make_result(), make_result(mse=0.07, accuracy=0.80, defence=NOISE)).kind is Kind.HIDES_MOST


def test_no_undefended_run_is_said_plainly():
    (verdict,) = verdicts(settings_of([make_result(defence=NOISE)]))
    assert "no undefended run to compare with" in verdict.opening
    assert verdict.judgements[0].kind is Kind.ALONE
    assert "instead of" not in verdict.judgements[0].sentence


def test_an_attack_that_fails_on_an_open_door_proves_nothing():
    results = [make_result(mse=0.079), make_result(mse=0.0799, defence=NOISE)]
    (verdict,) = verdicts(settings_of(results))
    assert "say nothing about a defence" in verdict.opening
    assert verdict.judgements[0].kind is Kind.WEAK_ATTACK


def test_knowing_only_the_class_is_noticed():
    learned = [only_judgement(make_result(), make_result(mse=mse, defence=NOISE)).sentence for mse in (0.050, 0.047)]
    assert ["class alone" in sentence for sentence in learned] == [True, False]


def test_runs_are_compared_with_the_undefended_run_most_like_them():
    twin = make_result(accuracy=0.70, audit={"suite": "standard"})
    judged = only_judgement(make_result(), twin, make_result(defence=NOISE, mse=0.03, audit={"suite": "standard"}))
    assert "instead of 70.0\xa0%" in judged.sentence
    assert "Not like for like" not in judged.sentence


def test_unlike_settings_are_named():
    judged = only_judgement(make_result(), make_result(defence=NOISE, mse=0.03, audit={"suite": "standard"}))
    assert "Not like for like: audit.suite=standard instead of quick." in judged.sentence


def test_two_versions_of_a_suite_are_two_settings_and_not_like_for_like():
    runs = [make_result(), make_result(defence=NOISE, seed=0), make_result(defence=NOISE, seed=1)]
    for run, version in zip(runs, ("quick-1+aaaaaaaa", "quick-1+aaaaaaaa", "quick-2+bbbbbbbb"), strict=True):
        run.suite = version
    (verdict,) = verdicts(settings_of(runs))
    said = {judged.setting.suite: judged.sentence for judged in verdict.judgements}
    assert "Not like for like" not in said["quick-1+aaaaaaaa"]
    assert "audit.suite=quick-2+bbbbbbbb instead of quick-1+aaaaaaaa" in said["quick-2+bbbbbbbb"]


def test_places_are_not_mixed():
    other = make_result(defence=NOISE, data={"name": "cifar10"})
    assert [(v.place[0], len(v.judgements)) for v in verdicts(settings_of([make_result(), other]))] == [
        ("fashion", 0),
        ("cifar10", 1),
    ]


def test_seeds_are_averaged():
    runs = [make_result(mse=mse, seed=seed, defence=NOISE) for seed, mse in enumerate((0.02, 0.04))]
    judged = only_judgement(make_result(), *runs)
    assert "(MSE\xa00.0300, mean of 2 seeds)" in judged.sentence


def test_flags_are_counted():
    clean, flagged = make_result(), make_result(flags=("too short", "too weak"))
    assert flag_line([clean]) == ""
    assert flag_line([clean, flagged]).startswith("This audit is flagged: 2 flags in 1 of 2 runs.")


def test_the_best_defence_comes_first_and_a_lost_task_last():
    runs = [
        make_result(mse=m, accuracy=a, defence={"noise": {"sigma": s}})
        for s, m, a in ((1, 0.07, 0.5), (2, 0.02, 0.88), (3, 0.05, 0.87))
    ]
    (verdict,) = verdicts(settings_of([make_result(), *runs]))
    assert [said.setting.name for said in verdict.judgements] == ["noise σ=3", "noise σ=2", "noise σ=1"]


def test_the_drop_of_what_is_described_is_in_the_sentence_where_both_were_asked():
    bare, defended = make_result(), make_result(mse=0.03, defence=NOISE)
    assert "All attributes" not in only_judgement(bare, defended).sentence
    defended.probes = described(0.25)
    assert "All attributes" not in only_judgement(bare, defended).sentence
    bare.probes = described(0.625)
    expected = "37.5\xa0points less often: from 62.5\xa0% of the pictures to 25.0\xa0% (chance 5.0\xa0%)"
    assert expected in only_judgement(bare, defended).sentence
    (verdict,) = verdicts(settings_of([defended]))
    assert "All attributes" not in verdict.judgements[0].sentence


def test_probes_stand_beside_those_of_the_undefended_run():
    bare, defended = make_result(), make_result(mse=0.03, defence=NOISE)
    bare.probes, defended.probes = described(0.625), described(0.25)
    first, second = probes_table(settings_of([defended, bare])).lines
    assert first[1:] == ["attributes", "all_right", "0.625", "–", "0.050", "–", "–"]
    assert second[1:] == ["attributes", "all_right", "0.250", "–", "0.050", "0.625", "0.375"]
