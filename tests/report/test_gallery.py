"""The gallery: pictures by leak, the worst case of each, and never more than fits."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from attcem.report import gallery as room
from attcem.report.gallery import data_address, galleries, strips
from attcem.report.selection import choose, closest
from attcem.runs import settings_of

from .made import make_result, rich_result

NOISE = {"noise": {"sigma": 0.5}}


def shown(*results):
    return galleries(settings_of(results), {})


def test_rows_are_the_ends_and_the_middle_by_leak():
    run = rich_result(pictures=40, attacked=60)
    (found,) = shown(run)
    mse = run.per_image["worst/mse"][:40]
    order = np.argsort(mse) + 1
    by_why = {
        why: [row.number for row in found.rows if row.why == why] for why in ("leaks most", "median", "leaks least")
    }
    assert by_why["leaks most"] == order[:3].tolist() and by_why["leaks least"] == order[-3:].tolist()
    assert by_why["median"] == order[18:21].tolist()
    assert [row.number for row in found.rows] == [n for n in order if n in {row.number for row in found.rows}]
    assert found.pictures == 40 and set(found.labels) == set(run.labels)


def test_defences_choose_where_there_are_any():
    bare, guarded = rich_result(), rich_result(defence=NOISE, mse=0.02)
    guarded.per_image["worst/mse"] = -bare.per_image["worst/mse"]
    (found,) = shown(bare, guarded)
    assert found.rows[0].number == int(guarded.per_image["worst/mse"][:40].argmin()) + 1


def test_every_cell_is_the_closest_reconstruction_with_its_own_scores():
    run = rich_result()
    number = 7
    run.per_image["ridge/mse"][number], run.per_image["ridge/ssim"][number] = 1e-3, 0.42
    run.per_image["decoder/ssim"][number] = 0.99
    assert closest(run)[number][0] == "ridge"
    (found,) = shown(run)
    run.per_image["worst/mse"][number] = 0.0
    (row,) = [row for row in shown(run)[0].rows if row.number == number + 1]
    cell, mean_image = row.cells
    assert (cell.mse, cell.ssim) == ("0.0010", "0.420") and "rebuilt by ridge: picture 8, class 7" in cell.alt
    assert mean_image.mse == f"{run.per_image['mean_image/mse'][number]:.4f}"
    assert [title for title, _, _ in found.columns] == ["no defence", "mean image"]


def test_an_older_result_shows_the_first_pictures_of_its_best_attacks():
    run = make_result(pictures=3)
    run.per_image["ridge/mse"][1] = 0.0
    assert {number: name for number, (name, _) in closest(run).items()}[1] == "ridge"
    assert np.array_equal(closest(run)[1][1], run.gallery["ridge"][1])
    assert [len(found.rows) for found in shown(run)] == [3]


def test_runs_show_pictures_that_all_of_them_kept():
    one, two = rich_result(), rich_result(defence=NOISE, mse=0.02)
    two.shown = [*range(39), 59]
    (found,) = shown(one, two)
    assert found.pictures == 39 and all(row.number <= 39 for row in found.rows)


def test_other_pictures_are_another_gallery():
    other = rich_result(defence=NOISE)
    other.gallery["original"] = 255 - other.gallery["original"]
    assert len(shown(rich_result(), other)) == 2


def test_of_several_seeds_the_first_is_shown():
    (found,) = shown(*(rich_result(seed=seed) for seed in (1, 0)))
    assert [remark for _, remark, _ in found.columns] == ["seed 0", "no latent needed"]


def test_beyond_its_room_a_gallery_loses_rows_then_columns_and_says_so(monkeypatch):
    runs = [rich_result(defence={"noise": {"sigma": s}}, mse=0.01 * s) for s in range(1, 5)]
    wide = shown(*runs)[0]
    monkeypatch.setattr(room, "ROOM", 32_000)
    (narrow,) = shown(*runs)
    assert 9 <= len(narrow.rows) < len(wide.rows) and not wide.left_out
    assert len(narrow.columns) - 1 + len(narrow.left_out) == 4 and narrow.left_out
    assert sum(len(c.source) for row in narrow.rows for c in (row.original, *row.cells)) < 32_000


def test_every_class_gets_its_own_ends_while_there_is_room():
    labels = {number: "ab"[number % 2] for number in range(20)}
    run = make_result()
    run.per_image = {"worst/mse": np.arange(20.0)}
    few, many = choose(range(20), labels, [run], 9), choose(range(20), labels, [run], 15)
    assert set(few) == {0, 1, 2, 8, 9, 10, 17, 18, 19}
    assert len(many) == 15 and set(many.values()) == {"leaks most", "median", "leaks least", ""}
    assert list(many) == sorted(many)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_picture_survives_its_address(channels):
    picture = np.random.default_rng(0).integers(0, 256, (8, 6, channels), np.uint8)
    back = Image.open(io.BytesIO(base64.b64decode(data_address(picture).split(",")[1])))
    np.testing.assert_array_equal(np.asarray(back).reshape(picture.shape), picture)


def test_a_large_picture_is_as_large_as_it_is_shown():
    picture = np.zeros((300, 200, 3), np.uint8)
    assert Image.open(io.BytesIO(base64.b64decode(data_address(picture).split(",")[1]))).size == (96, 144)


def test_every_attack_has_a_strip_with_its_errors():
    run = rich_result()
    rows = dict(strips(run))
    assert list(rows) == ["original", "decoder", "mean image"] and {len(row) for row in rows.values()} == {10}
    assert rows["decoder"][3].mse == f"{run.per_image['decoder/mse'][3]:.4f}" and rows["original"][0].mse == ""
