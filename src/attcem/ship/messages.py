"""The messages of the Open Inference Protocol over gRPC, made from their description as it is loaded.

Generated Python would be tied to one version of protobuf, and would claim the names of the package `inference` for the
whole process: no program could then use Triton's client beside it.
"""

from functools import cache
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

DESCRIPTION = Path(__file__).with_name("open_inference.binpb")
PACKAGE, SERVICE = "inference", "inference.GRPCInferenceService"


@cache
def pool() -> descriptor_pool.DescriptorPool:
    """The descriptions, in a pool of their own."""
    made = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTION.read_bytes()).file:
        made.AddSerializedFile(file.SerializeToString())
    return made


@cache
def message(name: str) -> Any:
    """The class of a message, by its name in the protocol."""
    return message_factory.GetMessageClass(pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def methods() -> dict[str, tuple[Any, Any]]:
    """Each method of the service → the classes of its request and its reply."""
    described = pool().FindServiceByName(SERVICE).methods
    return {each.name: (message(each.input_type.name), message(each.output_type.name)) for each in described}
