"""What the figures show: the right numbers in the right places, and nothing on top of anything else."""

import numpy as np
import pytest

from attcem.figures import FIGURES
from attcem.figures.errors import bar
from attcem.figures.group import groups_of
from attcem.figures.pictures import error, rows_of
from attcem.figures.style import styled
from attcem.figures.training import PANELS, measured
from attcem.runs.leak import best_attack
from tests.figures.made import NOISE, several, whole


@pytest.fixture(autouse=True)
def _style():
    with styled():
        yield


def many() -> list:
    runs = several(2)
    for number in range(14):
        name = f"defence_{number}_with_quite_a_long_name"
        runs += [whole({name: {"lam": 1.0}}, 0.02 + number / 500, 0.6 + number / 100, seed) for seed in range(2)]
    return runs


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("runs", [several(1)[1:2], many()], ids=["one", "many"])
def test_nothing_is_cut_off_and_the_legend_covers_nothing(name, runs):
    (group,) = groups_of(runs)
    figure = FIGURES[name].draw(group)
    figure.draw_without_rendering()
    paper = figure.bbox
    for axes in figure.axes:
        box = axes.get_tightbbox()
        if box is not None:
            assert box.x0 >= paper.x0 - 1 and box.x1 <= paper.x1 + 1, f"{axes.get_ylabel()} is cut off"
            assert box.y0 >= paper.y0 - 1 and box.y1 <= paper.y1 + 1, f"{axes.get_ylabel()} is cut off"
            assert axes.get_window_extent().height > 0.1 * figure.dpi, "the plot was squeezed away"
            for legend in figure.legends:
                assert not legend.get_window_extent().overlaps(box)
    for legend in figure.legends:
        box = legend.get_window_extent()
        assert box.x0 >= paper.x0 and box.x1 <= paper.x1 and box.y0 >= paper.y0


def test_the_trade_off_has_means_bars_over_seeds_a_ceiling_and_a_floor():
    runs = several(3)
    (group,) = groups_of(runs)
    figure = FIGURES["tradeoff"].draw(group)
    (axes,) = figure.axes
    bare, noise, _ = axes.containers
    own = [run for run in runs if run.config["defence"] == NOISE]
    line, _, (across, up) = noise
    assert line.get_xdata()[0] == pytest.approx(np.mean([run.worst.mse for run in own]))
    assert line.get_ydata()[0] == pytest.approx(np.mean([run.accuracy for run in own]))
    left, right = across.get_segments()[0][:, 0]
    assert (right - left) / 2 == pytest.approx(np.std([run.worst.mse for run in own], ddof=1))
    low, high = up.get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(np.std([run.accuracy for run in own], ddof=1))
    upright = [
        each.get_xdata()[0] for each in axes.lines if len(set(each.get_xdata())) == 1 == len(set(each.get_ydata())) - 1
    ]
    assert upright[:2] == pytest.approx([0.08, bare[0].get_xdata()[0]])
    assert bar([0.5]) == 0.0
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["mean image", "no defence", "noise", "noise + slot"]
    (above,) = axes.child_axes
    assert "MSE ratio" in above.get_xlabel()
    assert above._functions[0](0.08) == pytest.approx(1) and above._functions[1](0.5) == pytest.approx(0.04)


def test_a_name_that_begins_with_an_underscore_is_in_the_legend():
    (group,) = groups_of([whole({"_mine $5": {"lam": 1.0}}, 0.02, 0.8)])
    texts = [text.get_text() for text in FIGURES["tradeoff"].draw(group).legends[0].get_texts()]
    assert texts == ["mean image", " _mine $5"]


def test_a_defence_is_named_by_the_words_that_tell_it_from_others():
    def slot(**options):
        return {"noise": {"sigma": 0.1}, "slot": {"lam": 1.0, "tokens": "spatial", "shut_off": True} | options}

    def names(*runs):
        return [defence.name for defence in groups_of(runs)[0].defences]

    hinge, mixture = (whole(slot(form=form), 0.02, 0.8) for form in ("hinge", "mixture"))
    assert names(hinge) == ["noise + slot"]
    assert names(hinge, mixture) == ["noise + slot(form=hinge)", "noise + slot(form=mixture)"]
    assert names(hinge, whole(slot(form="mixture"), 0.02, 0.8, name="mine")) == ["noise + slot(form=hinge)", "mine"]
    longer = names(hinge, whole(slot(form="hinge"), 0.02, 0.8, train={"epochs": 9}))
    assert len(set(longer)) == 2 and "train.epochs=9" in longer[1]


def test_defences_are_shown_at_the_strength_nearest_to_the_accuracy_asked_for():
    names = {at: [one.name for one in groups_of(several(), at)[0].drawn] for at in (None, 0.7)}
    assert names[None] == ["no defence", "noise σ=0.3", "noise + slot"]
    assert names[0.7] == ["no defence", "noise σ=0.6", "noise + slot"]


def test_pictures_are_of_the_best_attack_and_of_the_same_images():
    runs = several(1)
    first = runs[0].gallery["original"]
    for number, run in enumerate(runs):  # after the first few, each keeps pictures of its own
        run.gallery["original"] = np.concatenate([first, first[: number + 1]])
    odd = whole({"other": {"lam": 1.0}}, 0.01, 0.8)
    odd.gallery["original"] = 255 - odd.gallery["original"]
    (group,) = groups_of([*runs, odd])
    rows = rows_of(group.drawn)
    assert [name.split("\n")[0] for name, _ in rows] == [
        "original",
        "no defence",
        "noise σ=0.3",
        "noise + slot",
        "mean image",
    ]
    assert best_attack(runs[0], runs[0].gallery) == "decoder" and np.array_equal(rows[1][1], runs[0].gallery["decoder"])
    picture, original = rows[1][1][0], rows[0][1][0]
    assert error(picture, original) == pytest.approx(np.mean((picture / 255.0 - original / 255.0) ** 2))


def test_training_is_drawn_over_the_epochs_that_every_seed_has_and_a_log_axis_can_show():
    runs = [whole(NOISE, 0.02, 0.8, seed) for seed in range(2)]
    runs[1].history.pop()
    runs[0].history[0]["penalty"] = 0.0
    loss, penalty = PANELS[0], PANELS[2]
    assert measured(runs, loss)[0] == [1, 2, 3] and measured(runs, penalty)[0] == [2, 3]
    assert measured(runs, loss)[1].shape == (2, 3)
    assert measured([], loss)[0] == []


def test_steps_of_the_attackers_effort_are_in_order_with_all_last():
    (group,) = groups_of(several(1))
    for name, order in (("repeats", ["1", "4", "64"]), ("pairs", ["100", "all"])):
        (axes,) = FIGURES[name].draw(group).axes
        assert [label.get_text() for label in axes.get_xticklabels()] == order


def test_two_versions_of_a_suite_are_not_drawn_together():
    runs = several(seeds=1)
    for run in runs:
        run.suite = "quick-1+aaaaaaaa"
    later = several(seeds=1)
    for run in later:
        run.suite = "quick-2+bbbbbbbb"
    groups = groups_of([*runs, *later])
    assert [group.place[-1] for group in groups] == ["quick-1+aaaaaaaa", "quick-2+bbbbbbbb"]
    assert [len(group.runs) for group in groups] == [4, 4]
