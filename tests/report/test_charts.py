"""Charts as data: everything drawn is in the table behind it, and nothing in it is markup or not JSON."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attcem.report.charts import Chart, Drawing, Grid, curve, words
from attcem.report.inside import histograms
from attcem.report.risk import by_class, by_option, by_picture, by_stage, charts
from attcem.report.tradeoff import HEIGHT, WIDTH, _box, free_places, tradeoff
from attcem.report.training import ALL, training
from attcem.runs import settings_of
from attcem.runs.leak import worst_per_image

from .made import CLASSES, make_result, rich_result

NOISE = {"noise": {"sigma": 0.5}}


def test_gaps_are_left_out_of_a_curve():
    drawn = curve("loss", [0, 1, 2, 3], [1.0, math.nan, None, 0.5], 0)
    assert (drawn["x"], drawn["y"]) == ([0, 3], [1.0, 0.5])


def test_data_are_json_whatever_was_measured():
    trace = {"x": [np.float32(1 / 3), math.inf, math.nan, None, 3], "name": "a", "visible": True}
    (found,) = Chart("t", "n", {"MSE": Drawing([trace])}, Grid([], [])).data().values()
    assert json.loads(json.dumps(found, allow_nan=False))["traces"] == [
        {"x": [0.33333, None, None, None, 3], "name": "a", "visible": True}
    ]


def test_names_cannot_be_markup_in_a_chart():
    evil = "<b>&<a href='javascript:alert(1)'>"
    found = json.dumps([chart.data() for chart in charts(settings_of([rich_result(defence={evil: {"lam": 1}})]))])
    assert "<b>" not in found and "<a" not in found
    assert words(evil).startswith("&lt;b&gt;&amp;")


@pytest.fixture
def settings():
    seeds = [rich_result(seed=seed, accuracy=accuracy) for seed, accuracy in enumerate((0.88, 0.90))]
    return settings_of([*seeds, rich_result(defence=NOISE, mse=0.02, accuracy=0.85)])


def test_the_tradeoff_shows_means_their_spread_and_what_is_free(settings):
    chart = tradeoff(settings)
    assert list(chart.drawings) == ["MSE", "MSE ratio", "SSIM"]
    drawing = chart.drawings["MSE"]
    bare = next(trace for trace in drawing.traces if trace.get("name") == "no defence")
    assert bare["y"] == [pytest.approx(0.89)] and bare["error_y"]["array"] == [pytest.approx(0.01 * math.sqrt(2))]
    assert [note["text"] for note in drawing.layout["annotations"]] == [
        "mean image: nothing left to see",
        "class mean: the label alone",
        "no defence",
    ]
    assert [line["x0"] for line in drawing.layout["shapes"]] == pytest.approx([0.08, 0.048, 0.004])
    ratio = chart.drawings["MSE ratio"].layout
    assert ratio["shapes"][0]["x0"] == 1 and "right: hides more" in ratio["xaxis"]["title"]["text"]
    assert chart.table.lines[0][:2] == ["no defence", "89.0\xa0% ± 1.4\xa0%"]
    assert chart.table.lines[1][2] == "0.0200" and chart.table.lines[2][2] == "0.0800"


def test_strengths_of_one_defence_are_one_curve():
    runs = [make_result(defence={"noise": {"sigma": s}}, accuracy=0.9 - s / 10, mse=s / 50) for s in (2, 1, 3)]
    runs += [make_result(defence={"noise": {"sigma": 1}, "bound": {"lam": 1}}, mse=0.01)]
    named = [t for t in tradeoff(settings_of(runs)).drawings["MSE"].traces if t.get("name")]
    assert [trace["name"] for trace in named] == ["noise", "noise + bound"]
    assert named[0]["y"] == sorted(named[0]["y"]) and "lines" in named[0]["mode"] and "lines" not in named[1]["mode"]


def test_nothing_measured_draws_nothing():
    settings = settings_of([make_result(mse=math.nan, accuracy=math.nan, pictures=0, epochs=0)])
    settings[0].runs[0].per_image, settings[0].runs[0].per_class = {}, {}
    assert tradeoff(settings) is None and charts(settings) == [] and training(settings) is None


@given(st.lists(st.tuples(st.floats(0.1, 0.9), st.floats(0.1, 0.9)), min_size=1, max_size=9))
def test_names_beside_points_never_touch(points):
    named = [(x, y, f"defence {i}") for i, (x, y) in enumerate(points)]
    places = free_places(named, (0, 1), (0, 1), {"a line": 0.5})
    boxes = [_box(p, x * WIDTH, y * HEIGHT, 6.6 * len(n)) for p, (x, y, n) in zip(places, named, strict=True) if p]
    for i, a in enumerate(boxes):
        assert all(a[0] >= b[2] or b[0] >= a[2] or a[1] >= b[3] or b[1] >= a[3] for b in boxes[:i])
    assert len(points) > 1 or boxes


def test_every_picture_is_drawn_most_leaking_first(settings):
    chart = by_picture(settings)
    rising, falling = (chart.drawings[name].traces[0]["y"] for name in ("MSE", "SSIM"))
    assert list(rising) == sorted(rising) and list(falling) == sorted(falling, reverse=True)
    values = settings[0].runs[0].per_image["worst/mse"]
    assert rising[0] == pytest.approx(values.min()) and rising[-1] == pytest.approx(values.max())


def test_percentiles_stand_in_where_single_pictures_were_not_kept():
    run = make_result(pictures=0)
    run.per_image = {}
    run.risk = {"percentiles": {"mse": {"p05": 0.1, "p50": 0.2}, "ssim": {"p05": 0.3, "p50": 0.5}}}
    traces = {name: drawing.traces[0] for name, drawing in by_picture(settings_of([run])).drawings.items()}
    assert traces["MSE"]["x"] == [5, 50] and traces["MSE"]["y"] == [0.1, 0.2]
    assert traces["SSIM"]["x"] == [50, 95] and traces["SSIM"]["y"] == [0.5, 0.3]


def test_classes_repeats_pairs_and_stages_hold_their_numbers(settings):
    assert by_class(settings).drawings["MSE"].traces[0]["y"] == CLASSES
    pairs = by_option(settings, "pairs", "", "", "")
    assert pairs.drawings["MSE"].traces[1]["x"] == ["100", "1000", "all"]
    assert pairs.table.lines[1] == ["noise σ=0.5", "0.0400", "0.0280", "0.0200"]
    assert by_stage(settings).table.lines[1][1:] == ["0.0050", "0.0100", "0.0200"]


def test_training_shows_each_run_alone_and_all_together(settings):
    found = training(settings)
    assert found.picks == [ALL, "no defence, seed 0", "no defence, seed 1", "noise σ=0.5"]
    drawn = {chart.title: chart.drawings for chart in found.charts}
    assert list(drawn) == [
        "Task loss", "Accuracy", "Penalty", "Intra-class MSE", "Gate means", "Learning rate", "Effective weight",
    ]  # fmt: skip
    assert len(drawn["Task loss"][ALL].traces) == 3
    assert [trace["name"] for trace in drawn["Gate means"]["noise σ=0.5"].traces] == [
        "dim gate",
        "snr gate",
        "class gate",
    ]
    assert set(drawn["Penalty"]) == {ALL, "noise σ=0.5"}, "a penalty of zero is no curve"


def test_epochs_without_a_penalty_are_shaded(settings):
    drawing = next(c for c in training(settings).charts if c.title == "Penalty").drawings["noise σ=0.5"]
    assert [(band["x0"], band["x1"]) for band in drawing.layout["shapes"]] == [(4.5, 6.5)]


def test_a_long_training_is_thinned_and_ends_where_it_ended():
    (setting,) = settings_of([rich_result(defence=NOISE, epochs=350)])
    trace = training([setting]).charts[0].drawings["noise σ=0.5"].traces[0]
    assert len(trace["x"]) <= 100 and trace["x"][-1] == 350 and np.ptp(np.diff(trace["x"])) == 0


def test_gates_and_slots_are_drawn_over_epochs(settings):
    gates, slots = histograms(settings[-1].runs[0])
    assert gates.title == "dim gate over training" and slots.title == "Slot usage over training"
    (trace,) = gates.drawings["dim_gate_histogram"].traces
    assert np.shape(trace["z"]) == (16, 6) and trace["y"][0] == 1 / 32


def test_worst_per_image_is_the_best_of_the_attacks_that_saw_one_send():
    run = make_result()
    run.per_image = {
        "decoder/mse": np.array([1.0, math.nan]),
        "ridge/mse": np.array([0.5, 2.0]),
        "often/mse": np.zeros(2),
        "mean_image/mse": np.zeros(2),
    }
    run.attacks["often"], run.repeated = run.attacks["ridge"], ["often"]
    np.testing.assert_array_equal(worst_per_image(run), [0.5, 2.0])
