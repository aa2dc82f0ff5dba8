import json

import numpy as np
import pytest

import attcem
from attcem.report import render, write_report
from attcem.types import Result

from .made import make_result, rich_result


def test_round_trip_through_files(tmp_path):
    results = [
        make_result(),
        make_result(mse=0.0231, defence={"noise": {"sigma": 0.5}}, flags=("loss still falling",)),
        make_result(pictures=0, epochs=0, seed=2),
        make_result(data={"name": "cifar10"}, channels=3),
    ]
    for i, run in enumerate(results):
        run.save(tmp_path / str(i))
    back = [Result.load(tmp_path / str(i)) for i in range(len(results))]
    assert [json.dumps(run.to_json()) for run in back] == [json.dumps(run.to_json()) for run in results]
    path = write_report(back, tmp_path / "new" / "report.html")
    assert path.read_text() == render(back)
    assert [file.name for file in path.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_result_keeps_its_arrays(tmp_path, channels):
    run = make_result(channels=channels, mse=0.0231)
    run.save(tmp_path)
    back = Result.load(tmp_path)
    assert back.worst.mse.p95 == run.worst.mse.p95
    assert set(back.gallery) == set(run.gallery)
    for name, pictures in run.gallery.items():
        np.testing.assert_array_equal(back.gallery[name], pictures)
    np.testing.assert_array_equal(back.per_image["ridge/mse"], run.per_image["ridge/mse"])


def test_a_row_may_hold_only_the_first_of_the_pictures(tmp_path):
    run = rich_result(pictures=12)
    run.save(tmp_path)
    back = Result.load(tmp_path)
    assert {name: len(row) for name, row in back.gallery.items()} == {
        "original": 12, "worst": 12, "decoder": 10, "mean_image": 10,
    }  # fmt: skip
    np.testing.assert_array_equal(back.gallery["worst"], run.gallery["worst"])
    assert back.shown == list(range(12))


def test_result_reports_itself(tmp_path):
    run = make_result()
    page = run.report(tmp_path / "one.html").read_text()
    assert "no defence" in page and page == render([run])
    assert attcem.write_report([run], tmp_path / "two.html").read_text() == page


def test_no_results_say_what_to_type(tmp_path):
    with pytest.raises(ValueError, match="attcem run"):
        write_report([], tmp_path / "report.html")
