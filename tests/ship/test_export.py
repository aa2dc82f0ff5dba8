"""What is exported is what was audited: one function of image and randomness, and nothing that draws inside."""

import hashlib
import json
import math
import shutil

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from attcem.defences import Noise, Wire
from attcem.ship import export, read_artifact
from attcem.ship.graphs import open_session, random_operators
from attcem.ship.halves import CloudHalf, DeviceHalf, packed, unpacked
from attcem.ship.randomness import LAWS, draw
from tests.ship.small import CLASSES, SHAPE, guarded, network


def test_the_graphs_compute_what_python_does_for_any_number_of_pictures(shipped):
    model, guard, folder = shipped
    artifact = read_artifact(folder)
    device, cloud = (open_session(folder / f"{half}.onnx") for half in ("device", "cloud"))
    for count in (1, 6):
        x = torch.rand(count, *SHAPE)
        noise = {one.name: torch.from_numpy(draw(one.distribution, (count, *one.shape))) for one in artifact.randomness}
        sent = device.run(None, {"image": x.numpy()} | {name: each.numpy() for name, each in noise.items()})[0]
        assert sent.dtype == np.uint8 and list(sent.shape[1:]) == artifact.wire.shape == [4]
        with torch.no_grad():
            wanted = guard.release(model.encoder(x), noise)
            torch.testing.assert_close(unpacked(guard.links[-1], torch.from_numpy(sent), model.latent_shape), wanted)
            logits = cloud.run(None, {"sent": sent})[0]
            torch.testing.assert_close(torch.from_numpy(logits), model.decoder(wanted), atol=1e-4, rtol=1e-4)


def test_the_artifact_says_what_its_user_must_know(shipped):
    _, guard, folder = shipped
    artifact = read_artifact(folder)
    assert artifact.picture.shape == list(SHAPE) and len(artifact.picture.classes) == CLASSES
    assert {each.name: each.distribution for each in artifact.randomness} == guard.distributions
    assert (artifact.wire.low, artifact.wire.high) == pytest.approx((-0.4, 1.4))
    named = {"device.onnx", "cloud.onnx", "device.pt2", "cloud.pt2", "model.safetensors", "README.md", "MLmodel"}
    assert named <= set(artifact.files)
    assert "no device will use it" in (folder / "README.md").read_text()


def test_torch_loads_the_same_programs(shipped):
    model, guard, folder = shipped
    program = torch.export.load(folder / "device.pt2").module()
    x, noise = torch.rand(2, *SHAPE), list(guard.draw(torch.zeros(2, 7)).values())
    assert torch.equal(program(x, *noise), DeviceHalf(model, guard)(x, *noise))


def change_a_byte(folder):
    content = bytearray((folder / "cloud.onnx").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "cloud.onnx").write_bytes(content)


def swap_the_halves(folder):
    (folder / "device.onnx").rename(folder / "other")
    (folder / "cloud.onnx").rename(folder / "device.onnx")
    (folder / "other").rename(folder / "cloud.onnx")


def climb_out(folder):
    data = json.loads((folder / "artifact.json").read_text())
    data["files"]["../elsewhere"] = data["files"]["README.md"]
    (folder / "artifact.json").write_text(json.dumps(data))


def link_out(folder):
    (folder.parent / "outside").write_bytes((folder / "README.md").read_bytes())
    (folder / "README.md").unlink()
    (folder / "README.md").symlink_to(folder.parent / "outside")


def draw_inside(folder):
    """A graph with a generator, listed with its right hash."""
    node = helper.make_node("RandomNormal", [], ["sent"], shape=[1, 4])
    output = helper.make_tensor_value_info("sent", TensorProto.FLOAT, [1, 4])
    (folder / "device.onnx").write_bytes(
        helper.make_model(helper.make_graph([node], "g", [], [output])).SerializeToString()
    )
    data = json.loads((folder / "artifact.json").read_text())
    content = (folder / "device.onnx").read_bytes()
    data["files"]["device.onnx"] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "artifact.json").write_text(json.dumps(data))


def forget_a_file(folder):
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(
    "damage, reason",
    [
        (change_a_byte, "not the file that was shipped"),
        (swap_the_halves, "not the file that was shipped"),
        (climb_out, "not inside the artifact"),
        (link_out, "leads out of the artifact"),
        (draw_inside, r"draws its own random numbers \(RandomNormal\)"),
        (forget_a_file, "lacks model.safetensors"),
    ],
)
def test_a_damaged_artifact_is_refused_with_the_reason(shipped, tmp_path, damage, reason):
    folder = shutil.copytree(shipped[2], tmp_path / "artifact")
    damage(folder)
    with pytest.raises(ValueError, match=reason):
        read_artifact(folder)


def test_a_generator_is_found_at_any_depth(tmp_path):
    inner = helper.make_graph(
        [helper.make_node("Dropout", ["x"], ["y"])], "inner", [], [helper.make_tensor_value_info("y", 1, [1])]
    )
    choice = helper.make_node("If", ["c"], ["z"], then_branch=inner, else_branch=inner)
    graph = helper.make_graph([choice], "outer", [], [helper.make_tensor_value_info("z", 1, [1])])
    (tmp_path / "deep.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    assert random_operators(tmp_path / "deep.onnx") == ["Dropout"]
    assert onnx.load(tmp_path / "deep.onnx").graph.node[0].op_type == "If"


def test_nothing_is_written_over_and_no_half_artifact_is_left(shipped, tmp_path):
    model, guard, folder = shipped
    with pytest.raises(ValueError, match="is not empty"):
        export(model, guard, folder)
    broken = guarded(network(), Wire(bits=8), Wire(bits=4))
    with pytest.raises(ValueError, match="only the last is sent"):
        export(network(), broken, tmp_path / "made")
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=30)
@given(count=st.integers(1, 9), bits=st.sampled_from([4, 8]), seed=st.integers(0, 99))
def test_what_is_packed_is_what_was_released(count, bits, seed):
    torch.manual_seed(seed)
    wire = Wire(bits=bits, low=-1.0, high=2.0)
    released = wire.release(3 * torch.randn(2, count))
    sent = packed(wire, released)
    assert sent.dtype == torch.uint8 and sent.shape[1] == math.ceil(count * bits / 8)
    torch.testing.assert_close(unpacked(wire, sent, (count,)), released)


MOMENTS = {"normal": (0.0, 1.0), "laplace": (0.0, 2.0), "uniform": (0.5, 1 / 12)}


@pytest.mark.parametrize("law", LAWS)
def test_what_the_operating_system_draws_has_the_declared_distribution(law):
    drawn, (mean, variance) = draw(law, (200_000,)), MOMENTS[law]
    assert drawn.dtype == np.float32 and np.isfinite(drawn).all()
    assert drawn.mean() == pytest.approx(mean, abs=0.02) and drawn.var() == pytest.approx(variance, rel=0.03)
    assert not np.array_equal(draw(law, (8,)), draw(law, (8,)))
    for worst in (b"\x00", b"\xff"):
        assert np.isfinite(draw(law, (3,), lambda count, byte=worst: byte * count)).all()


def test_a_uniform_number_never_reaches_one():
    assert draw("uniform", (4,), lambda count: b"\x00" * count).max() < 1


def test_the_cloud_reads_floats_where_nothing_is_on_a_grid():
    model = network()
    guard = guarded(model, Noise(0.1))
    x = torch.rand(2, *SHAPE)
    with torch.no_grad():
        sent = DeviceHalf(model, guard)(x, torch.zeros(2, 7))
        assert torch.equal(CloudHalf(model, guard)(sent), model(x))
