import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attcem.report.charts import Line, line_chart, ticks
from attcem.report.figures import training_curves, worst_per_image
from attcem.report.settings import settings_of
from attcem.report.tradeoff import Point, ridges, scatter

from .made import make_result


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4))
def test_ticks_enclose_the_span_with_few_round_steps(low, extent):
    found = ticks(low, low + extent)
    assert found[0] <= low + 1e-6 * extent
    assert found[-1] >= low + extent - 1e-6 * extent
    assert 3 <= len(found) <= 8


@pytest.mark.parametrize("value", [0.0, 0.5, -3.0])
def test_ticks_survive_a_span_of_nothing(value):
    found = ticks(value, value)
    assert found[0] < value < found[-1]


def test_gaps_are_left_out_of_a_curve():
    svg = line_chart("loss", [Line("train", [0, 1, 2, 3], [1.0, math.nan, None, 0.5], "train")], "epoch")
    (curve,) = [element for element in ElementTree.fromstring(svg) if element.tag == "polyline"]
    assert len(curve.attrib["points"].split()) == 2


def test_nothing_to_draw_draws_nothing():
    assert line_chart("loss", [Line("train", [0], [None], "train")], "epoch") == ""
    assert scatter("trade", [Point(math.nan, 0.5, "none", "undefended")], {}) == ""
    assert ridges("spread", [("none", np.empty(0))], math.nan) == ""


def test_names_are_escaped():
    svg = scatter("trade", [Point(0.1, 0.5, "<b>&", "defended")], {"mean image": 0.2})
    assert "<b>" not in svg
    assert "&lt;b&gt;&amp;" in svg


def test_marks_and_points_keep_their_order():
    svg = ElementTree.fromstring(scatter("t", [Point(0.1, 0.5, "a", "defended")], {"mean image": 0.2}))
    (point,) = svg.findall("circle")
    (mark,) = [line for line in svg.findall("line") if line.attrib["class"] == "mark"]
    assert float(point.attrib["cx"]) < float(mark.attrib["x1"])


def test_labels_never_overlap():
    points = [Point(0.01, 0.88 + i * 1e-3, f"defence {i}", "defended") for i in range(12)]
    svg = ElementTree.fromstring(scatter("t", points, {}))
    at = [(float(t.attrib["x"]), float(t.attrib["y"])) for t in svg.findall("text") if t.attrib["class"] == "label"]
    assert 1 < len(at) < 12
    assert all(abs(a[1] - b[1]) > 10 or abs(a[0] - b[0]) > 50 for i, a in enumerate(at) for b in at[:i])


def test_a_penalty_of_zero_gets_no_chart():
    run = make_result()
    run.history = [row | {"penalty": 0.0} for row in run.history]
    assert [len(curves.charts) for curves in training_curves(settings_of([run]))] == [2]
    assert [len(curves.charts) for curves in training_curves(settings_of([make_result()]))] == [3]


def test_worst_per_image_is_the_lowest_of_the_attacks():
    run = make_result()
    run.per_image = {
        "decoder/mse": np.array([1.0, math.nan]),
        "ridge/mse": np.array([0.5, 2.0]),
        "mean_image/mse": np.zeros(2),
    }
    np.testing.assert_array_equal(worst_per_image(run), [0.5, 2.0])
