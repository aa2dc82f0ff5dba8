"""A model repository that Triton and KServe read."""

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, text_format

from attcem.cli import main
from attcem.ship import triton
from attcem.ship.graphs import open_session

FIELD = descriptor_pb2.FieldDescriptorProto
TYPES = {"TYPE_STRING": 13, "TYPE_UINT8": 2, "TYPE_FP32": 11}  # some of them, with their numbers in the protocol


def model_config():
    """The part of Triton's message ModelConfig that is used here, so that a wrong name or value is noticed."""
    file = descriptor_pb2.FileDescriptorProto(name="model_config.proto", package="inference", syntax="proto3")
    types = file.enum_type.add(name="DataType")
    types.value.add(name="TYPE_INVALID", number=0)
    for name, number in TYPES.items():
        types.value.add(name=name, number=number)
    text, number, array = FIELD.TYPE_STRING, FIELD.TYPE_INT64, FIELD.LABEL_REPEATED
    tensor = [("name", text), ("data_type", ".inference.DataType"), ("dims", number, array)]
    config = [("name", text), ("backend", text), ("max_batch_size", FIELD.TYPE_INT32)]
    config += [("input", ".inference.ModelTensor", array), ("output", ".inference.ModelTensor", array)]
    config += [("dynamic_batching", ".inference.ModelDynamicBatching")]
    for message, fields in {"ModelTensor": tensor, "ModelDynamicBatching": [], "ModelConfig": config}.items():
        made = file.message_type.add(name=message)
        for place, (name, kind, *label) in enumerate(fields, 1):
            field = made.field.add(name=name, number=place, label=label[0] if label else FIELD.LABEL_OPTIONAL)
            if isinstance(kind, int):
                field.type = kind
            else:
                field.type = FIELD.TYPE_ENUM if kind.endswith("DataType") else FIELD.TYPE_MESSAGE
                field.type_name = kind
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))()


@pytest.mark.parametrize("wire", ["audited", "floats"])
def test_the_configuration_describes_the_graph_beside_it(wire, request, tmp_path):
    folder = request.getfixturevalue(wire)
    model = triton.write_repository(folder, tmp_path / "repository", name="shop", batch=32)
    assert {path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()} == {
        "config.pbtxt",
        "1/model.onnx",
    }
    config = text_format.Parse((model / "config.pbtxt").read_text(), model_config())
    assert (config.name, config.backend, config.max_batch_size) == (model.name, "onnxruntime", 32)
    assert config.HasField("dynamic_batching")
    session = open_session(model / "1" / "model.onnx")
    kinds = {"tensor(float)": "TYPE_FP32", "tensor(uint8)": "TYPE_UINT8"}
    for described, actual in ((config.input, session.get_inputs()), (config.output, session.get_outputs())):
        (tensor,), (graph,) = described, actual
        assert tensor.name == graph.name and tensor.data_type == TYPES[kinds[graph.type]]
        assert list(tensor.dims) == graph.shape[1:] and isinstance(graph.shape[0], str)


def test_what_is_there_is_not_written_over(audited, tmp_path, capsys):
    triton.write_repository(audited, tmp_path)
    before = (tmp_path / "cloud" / "config.pbtxt").read_text()
    assert main(["export", "no-run", "--triton", str(tmp_path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert (tmp_path / "cloud" / "config.pbtxt").read_text() == before
