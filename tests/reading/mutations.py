"""Small damage to files, from a random generator: each returns the new content and what was done, in words."""

from __future__ import annotations

import io
import json
import math
import random
import struct
from collections.abc import Callable

import numpy as np
import torch
import yaml
from PIL import Image
from safetensors.torch import load, save

from tests.reading.trees import KIN, NUMBERS, ODD, nodes, several

Mutation = Callable[[random.Random, bytes], tuple[bytes, str]]


def of_bytes(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """Flip, cut, repeat, overwrite or add some bytes."""
    content = bytearray(whole)
    at = rng.randrange(len(content))
    long = rng.choice([1, 2, 8, 100])
    match rng.choice(["flip", "cut", "drop", "repeat", "zero", "noise"]):
        case "flip":
            content[at] ^= 1 << rng.randrange(8)
            return bytes(content), f"a bit of byte {at} is flipped"
        case "cut":
            return bytes(content[:at]), f"cut after {at} bytes"
        case "drop":
            del content[at : at + long]
            return bytes(content), f"{long} bytes from {at} are gone"
        case "repeat":
            content[at:at] = content[at : at + long]
            return bytes(content), f"{long} bytes from {at} are there twice"
        case "zero":
            content[at : at + long] = bytes(len(content[at : at + long]))
            return bytes(content), f"{long} bytes from {at} are zero"
        case _:
            content[at : at + long] = rng.randbytes(long)
            return bytes(content), f"{long} bytes from {at} are noise"


def of_json(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """A changed tree, sometimes a key that is there twice, sometimes changed bytes."""
    chance = rng.random()
    if chance < 0.15:
        return of_bytes(rng, whole)
    tree, said = several(rng, json.loads(whole))
    text = json.dumps(tree)
    if chance < 0.17:
        deep = rng.choice(["[", '{"a":']) * 10_000
        return text.replace(rng.choice("0123456789"), deep, 1).encode(), f"{said}; ten thousand brackets"
    if chance < 0.2 and text.startswith("{") and len(text) > 2:
        return ('{"seed": 0, ' + text[1:]).encode(), f"{said}; a first key 'seed'"
    return text.encode(), said


def of_values(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """Numbers and words become others of their kind, and some get other names: most of it can still be read."""
    tree, said = json.loads(whole), []
    for _ in range(rng.choice([1, 3, 10])):
        section = rng.choice([part for part in tree.values() if isinstance(part, dict | list) and part])
        parent, key = rng.choice([(parent, key) for parent, key in nodes(section)])
        parent[key] = rng.choice(KIN.get(type(parent[key]), [parent[key]]))
        said.append(f"{key!r} is {parent[key]!r:.60}")
        if isinstance(parent, dict) and rng.random() < 0.2:
            name = rng.choice(["p", "pp", "px", "p999999", "p-1", "nan", "1e9", "mse", "<b>", ""])
            parent[name] = parent.pop(key)
            said.append(f"and called {name!r}")
    return json.dumps(tree).encode(), "; ".join(said)


def of_network(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """A network of another size, which may be larger than any memory."""
    state = json.loads(whole)
    key = rng.choice(list(state["spec"]))
    value = rng.choice([*NUMBERS, 3, 27, 28, 29, 30_000, 10**6, 1e6, 1e-9, "vgg11", "resnet18", "tanh", None])
    parent = state["spec"]
    if isinstance(parent[key], dict | list):
        parent = parent[key]
        key = rng.choice(list(parent) if isinstance(parent, dict) else range(len(parent)))
    parent[key] = value
    return json.dumps(state).encode(), f"spec {key!r} is {value!r}"


def of_yaml(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """The same in YAML, with anchors where a part is there twice."""
    if rng.random() < 0.2:
        return of_bytes(rng, whole)
    tree, said = several(rng, yaml.safe_load(whole))
    return yaml.safe_dump(tree, allow_unicode=True).encode(errors="surrogatepass"), said


def of_npz(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """An array is renamed, reshaped, of another type or gone; or bytes change."""
    if rng.random() < 0.5:
        return of_bytes(rng, whole)
    arrays = dict(np.load(io.BytesIO(whole)))
    name = rng.choice(list(arrays))
    values = arrays.pop(name)
    match rng.choice(["gone", "renamed", "dtype", "shape", "odd"]):
        case "gone":
            said = f"{name} is gone"
        case "renamed":
            new = rng.choice(["", "x", "worst/mse", "train/a/slot_mass", "images", "learnt/x", "a" * 200])
            arrays[new], said = values, f"{name} is called {new!r:.40}"
        case "dtype":
            kind = rng.choice(["?", "i1", "u8", "f2", "f8", ">f4", "c8", "U3", "S2", "M8[s]", "O", [("a", "f4")]])
            said = f"{name} is of type {kind!r}"
            arrays[name] = np.zeros(values.shape, kind)
        case "shape":
            shape = rng.choice([(), (0,), (1,), (3, 0), (2, 3), (1, 1, 1, 1), (0, 3, 4, 4), (7,)])
            arrays[name], said = np.zeros(shape, values.dtype), f"{name} has shape {shape}"
        case _:
            value = rng.choice([math.nan, math.inf, -math.inf, -1.0, 1e300, 0.0])
            with np.errstate(all="ignore"):
                arrays[name] = np.full(values.shape, value).astype(values.dtype)
            said = f"{name} is {value}"
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue(), said


def of_png(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """A picture of another size, mode, resolution or format; or bytes change."""
    if rng.random() < 0.6:
        return of_bytes(rng, whole)
    form = rng.choice(["PNG", "PNG", "PNG", "GIF", "BMP", "EPS", "TIFF"])
    mode = rng.choice(["L", "RGB"] if form == "EPS" else ["1", "L", "P", "RGB"])
    size = rng.choice([(1, 1), (16, 16), (64, 16), (63, 16), (64, 1), (4096, 1), (32, 48)])
    file = io.BytesIO()
    dots = {"dpi": (rng.choice([1, 72, 10**6]),) * 2} if form == "PNG" else {}
    Image.new(mode, size).save(file, form, **dots)
    return file.getvalue(), f"a {form} of mode {mode}, {size}, {dots}"


def of_safetensors(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """The header is changed as JSON is, its length fitting; or bytes change."""
    if rng.random() < 0.4:
        return of_bytes(rng, whole)
    (length,) = struct.unpack("<Q", whole[:8])
    header, said = of_json(rng, whole[8 : 8 + length])
    return struct.pack("<Q", len(header)) + header + whole[8 + length :], said


def of_tensors(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """A tensor is renamed, reshaped, of another type, not finite, or gone; the file itself is whole."""
    tensors = load(whole)
    name = rng.choice(
        [each for each in tensors if each.startswith(rng.choice(["optimiser", "guard", ""]))] or [*tensors]
    )
    tensor = tensors.pop(name)
    match rng.choice(["gone", "renamed", "dtype", "shape", "odd", "unknown"]):
        case "gone":
            return save(tensors), f"{name} is gone"
        case "renamed":
            new = rng.choice(["", "optimiser", "optimiser.", "optimiser.x.y", "optimiser.99.step", "optimiser.0.a.b"])
            return save(tensors | {new: tensor}), f"{name} is called {new!r}"
        case "dtype":
            kind = rng.choice([torch.bool, torch.int8, torch.int64, torch.float16, torch.float64, torch.bfloat16])
            return save(tensors | {name: tensor.to(kind)}), f"{name} is of type {kind}"
        case "shape":
            shape = rng.choice([(), (0,), (1,), (3, 0), (2, 3), (1, 1, 1, 1), (7,)])
            return save(tensors | {name: torch.zeros(shape)}), f"{name} has shape {shape}"
        case "odd":
            value = rng.choice([math.nan, math.inf, -1.0])
            return save(tensors | {name: torch.full(tensor.shape, value)}), f"{name} is {value}"
        case _:
            content = save(tensors | {name: torch.zeros(3, dtype=torch.float8_e5m2)})
            return content.replace(b"F8_E5M2", b"F8_E8M0"), f"{name} is of a type that torch does not have"


def of_csv(rng: random.Random, whole: bytes) -> tuple[bytes, str]:
    """A cell is something else; or bytes change."""
    if rng.random() < 0.5:
        return of_bytes(rng, whole)
    lines = [line.split(",") for line in whole.decode().splitlines()]
    row = rng.choice(lines)
    cell, row[rng.randrange(len(row))] = rng.choice(ODD), ""
    row[rng.randrange(len(row))] = str(cell)
    return "\n".join(map(",".join, lines)).encode(errors="surrogatepass"), f"a cell is {cell!r:.60}"
