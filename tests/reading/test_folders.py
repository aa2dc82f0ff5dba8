"""A run's folder that somebody else has written: whatever is wrong is one line that names the file."""

import io
import json
import os
import zipfile

import numpy as np
import pytest
from PIL import Image

from attcem.reading import arrays
from attcem.train.checkpoint import read_state, read_tensors
from attcem.types import Result
from tests.report.made import rich_result


@pytest.fixture
def run(tmp_path):
    rich_result(defence={"noise": {"sigma": 0.1}}).save(tmp_path)
    (tmp_path / "explain").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "explain" / "1.png")
    (tmp_path / "explain" / "entries.json").write_text('[{"file": "1.png", "title": "a", "caption": "b"}]')
    assert Result.load(tmp_path).explanations
    return tmp_path


def test_a_result_is_loaded_by_its_folder(run):
    with pytest.raises(ValueError, match=f"give the run's folder, {run}$"):
        Result.load(run / "result.json")


def test_only_a_png_is_opened_as_one(run, monkeypatch):
    """Pillow hands an EPS to Ghostscript, a program, whatever the file is called."""
    started = []
    monkeypatch.setattr("PIL.EpsImagePlugin.Ghostscript", lambda *a, **k: started.append(a) or Image.new("RGB", (8, 8)))
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "EPS")
    for path in (run / "images" / "worst.png", run / "explain" / "1.png"):
        before = path.read_bytes()
        path.write_bytes(file.getvalue())
        with pytest.raises(ValueError, match=rf"{path.name} cannot be read as a PNG"):
            Result.load(run)
        path.write_bytes(before)
    assert not started


def test_a_picture_of_too_many_pixels_is_not_decoded(run, monkeypatch):
    monkeypatch.setattr(arrays, "PIXELS", 100)
    with pytest.raises(ValueError, match="pixels are too many"):
        Result.load(run)


def test_a_strip_must_hold_whole_pictures(run):
    Image.new("L", (37, 16)).save(run / "images" / "decoder.png")
    with pytest.raises(ValueError, match=r"decoder\.png is 37 pixels wide"):
        Result.load(run)


def test_a_pipe_is_not_waited_for(run):
    (run / "images" / "worst.png").unlink()
    os.mkfifo(run / "images" / "worst.png")
    with pytest.raises(ValueError, match=r"worst\.png is not a plain file"):
        Result.load(run)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"worst/mse": np.array([{}], dtype=object)}, "no plain array"),
        ({"worst/mse": np.zeros((3, 2))}, "shape"),
        ({"worst/mse": np.array(["a"])}, "not numbers"),
        ({"worst/mse": np.zeros(3), "worst/ssim": np.zeros(4)}, "same number of images"),
        ({"train/slot_mass": np.zeros(3)}, "shape"),
        ({"worst/mse": np.zeros(3)}, "were not attacked"),
    ],
)
def test_arrays_are_what_they_should_be(run, arrays, message):
    np.savez(run / "diagnostics.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        Result.load(run)


def test_an_archive_that_unpacks_to_gigabytes_is_left_packed(run):
    with zipfile.ZipFile(run / "diagnostics.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("worst/mse.npy", bytes(300_000_000))
    assert (run / "diagnostics.npz").stat().st_size < 1_000_000
    with pytest.raises(ValueError, match=r"diagnostics\.npz is damaged \(unpacked it is larger than 256 MB"):
        Result.load(run)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": "high"}, "accuracy must be a number, not 'high'"),
        ({"accuracy": float("nan")}, "accuracy must lie between 0 and 1"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"seed": 10**40}, "64 bits"),
        ({"worst": {"mse": 1}}, r"worst\.mse must be a mapping, not 1"),
        ({"attacks": []}, "attacks must be a mapping"),
        ({"history": [{"epoch": None}]}, r"history\[0\]\.epoch must be a number, not None"),
        ({"config": {"defence": {"noise": 3}}}, r"config\.defence"),
        ({"bounds": {"fisher": 3}}, r"bounds\.fisher must be a mapping"),
        ({"clients": [{"client": 0}]}, r"clients\[0\] has no 'images'"),
        ({"gallery": {}}, "'gallery', which this version does not know"),
        ({"shown": [-1] * 40}, "were not attacked"),
    ],
)
def test_a_result_of_wrong_types_is_named_with_the_place(run, change, message):
    written = json.loads((run / "result.json").read_text())
    (run / "result.json").write_text(json.dumps(written | change))
    with pytest.raises(ValueError, match=rf"result\.json.*{message}"):
        Result.load(run)


@pytest.mark.parametrize(
    "content", [b"\xff", b"[" * 100_000, b'{"a": 1, "a": 2}', b'["\\ud800"]', b"[" * 40 + b"]" * 40]
)
def test_json_that_is_none_is_named(run, content):
    for path in (run / "result.json", run / "checkpoint" / "state.json", run / "explain" / "entries.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"result\.json is damaged"):
        Result.load(run)
    with pytest.raises(ValueError, match=r"state\.json is damaged"):
        read_state(run / "checkpoint")


def test_a_state_of_wrong_types_is_named_and_its_files_lie_beside_it(tmp_path):
    state = {"config": {}, "spec": None, "seed": 0, "files": {"best": {"name": "../../secret", "sha256": ""}}}
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(ValueError, match=f"{tmp_path}/secret"):
        read_tensors(tmp_path, read_state(tmp_path), "best")
    with pytest.raises(ValueError, match="names no 'last' tensors"):
        read_tensors(tmp_path, read_state(tmp_path), "last")
    for change in ({"epoch": "1"}, {"files": {"best": {}}}, {"spec": {"backbone": 1}}, {"history": 1}, {"more": 1}):
        (tmp_path / "state.json").write_text(json.dumps(state | change))
        with pytest.raises(ValueError, match=r"state\.json is damaged"):
            read_state(tmp_path)
