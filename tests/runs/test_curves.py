"""Which runs make a curve, and what it is called."""

from __future__ import annotations

from attcem.runs import curves_of
from tests.compare.planted import bound, made, noise, quickly

CHAIN = "noise + bound(assign=slot)"


def test_curves_differ_in_words_and_not_in_strengths():
    runs = [made(bound(lam, assign), 0.8 - lam / 10, 0.04) for assign in ("slot", "class") for lam in (1, 2)]
    assert [(c.name, len(c.settings)) for c in curves_of(runs)] == [
        ("noise + bound(assign=slot)", 2),
        ("noise + bound(assign=class)", 2),
    ]


def test_numbers_that_are_no_strength_divide_curves_when_a_strength_varies_too():
    runs = [made(bound(lam, slots=slots), 0.8 - lam / 10, 0.04) for slots in (4, 8) for lam in (1, 2)]
    names = [curve.name for curve in curves_of(runs)]
    assert names == ["noise + bound(slots=4)", "noise + bound(slots=8)"]
    alone = [made({"topk": {"kept": kept}}, 0.8 - kept / 100, 0.04) for kept in (1, 2, 3)]
    assert [(curve.name, len(curve.settings)) for curve in curves_of(alone)] == [("topk", 3)]


def test_other_training_makes_another_curve_and_is_said():
    runs = [made(noise(s), 0.8 - s / 10, 0.04, train={"epochs": e}) for e in (5, 8) for s in (1, 2)]
    assert [curve.name for curve in curves_of(runs)] == ["noise [train.epochs=5]", "noise [train.epochs=8]"]
    found = quickly(runs, at_accuracy=0.65)
    assert "trained differently (train.epochs: 5 and 8)" in found.rows[1].notes


def test_a_setting_that_is_off_equals_one_that_did_not_exist_yet_and_machines_do_not_matter():
    runs = [
        made(noise(1), 0.7, 0.04, train={"epochs": 5}),
        made(noise(2), 0.6, 0.05, train={"epochs": 5, "ramp": 0.0, "start_from": None, "device": "cuda"}),
    ]
    assert [len(curve.settings) for curve in curves_of(runs)] == [2]


def test_experiments_that_have_a_name_lend_it_to_the_curve():
    runs = [made(bound(lam), 0.8 - lam / 10, 0.04, name=f"ours-{lam}") for lam in (1.0, 2.5)]
    runs += [made(noise(s), 0.8 - s / 10, 0.04, name=f"noise_sigma{s}") for s in (1, 2)]
    assert [(c.name, c.chain) for c in curves_of(runs)] == [("ours", CHAIN), ("noise", "noise")]
    assert quickly(runs, at_accuracy=0.65, against=CHAIN).reference == "ours"
    same = [made(bound(1, assign), 0.7, 0.04, name="mine") for assign in ("slot", "class")]
    assert [c.name for c in curves_of(same)] == [CHAIN, "noise + bound(assign=class)"]


def test_a_name_that_is_another_curves_chain_is_not_used():
    runs = [made(bound(1), 0.7, 0.04, name="noise"), made(noise(1), 0.7, 0.04)]
    assert [c.name for c in curves_of(runs)] == ["noise + bound", "noise"]


def test_another_network_makes_another_curve_and_is_said():
    runs = [made(noise(1), 0.8, 0.04, model={"backbone": "vgg11_bn", "cut": cut}) for cut in (4, 6)]
    assert [curve.name for curve in curves_of(runs)] == ["noise [model.cut=4]", "noise [model.cut=6]"]


def test_a_strength_is_named_with_its_curve_and_the_weakest_comes_first():
    (curve,) = curves_of([made(bound(lam), 0.8 - lam / 10, 0.04, seed) for lam in (4, 1) for seed in (0, 1)])
    assert [curve.name_at(setting) for setting in curve.settings] == ["noise + bound λ=1", "noise + bound λ=4"]
    assert [len(setting.runs) for setting in curve.settings] == [2, 2] and len(curve.runs) == 4
