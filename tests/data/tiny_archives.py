"""Tiny archives in the official layouts, with the arrays that must come out of them."""

import hashlib
import io
import pickle
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image

Contents = dict[str, bytes]


def sha256(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


def write_tar(path: Path, contents: Contents, mode: str = "w:gz") -> Path:
    with tarfile.open(path, mode) as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def write_zip(path: Path, contents: Contents) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


def pictures(n: int, height: int, width: int, channels: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, height, width, channels), dtype=np.uint8)


def encode(image: np.ndarray, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(image.squeeze()).save(buffer, form)
    return buffer.getvalue()


def flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 3, 1, 2)).reshape(len(x), -1)


def python2_string(text: bytes) -> bytes:
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<I", len(text)) + text


def python2_batch(x: np.ndarray, labels: list[int], key: bytes) -> bytes:
    """The very opcodes that Python 2 and an old numpy wrote into the official files."""
    rows = flat(x)
    shape = b"".join(b"M" + struct.pack("<H", length) for length in rows.shape)
    kind = b"cnumpy\ndtype\n" + python2_string(b"u1") + b"K\x00K\x01\x87R"
    kind += b"(K\x03" + python2_string(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x01cnumpy\nndarray\nK\x00\x85" + python2_string(b"b") + b"\x87Rq\x02"
    )
    array += b"(K\x01" + shape + b"\x86" + kind + b"\x89" + python2_string(rows.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + python2_string(key) + numbers + python2_string(b"data") + array + b"u."


def cifar_arrays(classes: int) -> tuple[np.ndarray, list[int], np.ndarray, list[int]]:
    per_class = 40 if classes == 10 else 4
    train, test = classes * per_class, classes * 2
    labels = [index % classes for index in range(train)]
    return pictures(train, 32, 32, 3), labels, pictures(test, 32, 32, 3, seed=1), labels[:test]


def cifar10_python(path: Path, protocol: int = 2) -> Path:
    x, y, x_test, y_test = cifar_arrays(10)
    folder, half = "cifar-10-batches-py", len(x) // 2
    names = {"label_names": [f"thing {label}" for label in range(10)]}
    return write_tar(
        path,
        {
            f"{folder}/data_batch_1": python2_batch(x[:half], y[:half], b"labels"),
            f"{folder}/data_batch_2": pickle.dumps({"data": flat(x[half:]), "labels": y[half:]}, protocol),
            f"{folder}/test_batch": pickle.dumps({b"data": flat(x_test), b"labels": y_test}, protocol),
            f"{folder}/batches.meta": pickle.dumps(names, protocol),
            f"{folder}/readme.html": b"<html>",
        },
    )


def cifar10_binary(path: Path) -> Path:
    x, y, x_test, y_test = cifar_arrays(10)
    train = np.concatenate([np.array(y, dtype=np.uint8)[:, None], flat(x)], axis=1)
    test = np.concatenate([np.array(y_test, dtype=np.uint8)[:, None], flat(x_test)], axis=1)
    names = "".join(f"thing{label}\n" for label in range(10)).encode() + b"\n"
    folder = "cifar-10-batches-bin"
    return write_tar(
        path,
        {
            f"{folder}/batches.meta.txt": names,
            f"{folder}/data_batch_1.bin": train[:200].tobytes(),
            f"{folder}/data_batch_2.bin": train[200:].tobytes(),
            f"{folder}/test_batch.bin": test.tobytes(),
        },
    )


def cifar100_python(path: Path) -> Path:
    x, y, x_test, y_test = cifar_arrays(100)
    coarse = [label // 5 for label in y]
    return write_tar(
        path,
        {
            "cifar-100-python/train": pickle.dumps({"data": flat(x), "fine_labels": y, "coarse_labels": coarse}, 2),
            "cifar-100-python/test": python2_batch(x_test, y_test, b"fine_labels"),
            "cifar-100-python/meta": pickle.dumps({"fine_label_names": [f"fine {label}" for label in range(100)]}, 2),
        },
    )


def cifar100_binary(path: Path) -> Path:
    def records(x: np.ndarray, y: list[int]) -> bytes:
        fine = np.array(y, dtype=np.uint8)[:, None]
        return np.concatenate([fine // 5, fine, flat(x)], axis=1).tobytes()

    x, y, x_test, y_test = cifar_arrays(100)
    names = "".join(f"fine{label}\n" for label in range(100)).encode()
    contents = {"train.bin": records(x, y), "test.bin": records(x_test, y_test), "fine_label_names.txt": names}
    return write_tar(path, {f"cifar-100-binary/{name}": content for name, content in contents.items()})


def tinyimagenet(path: Path) -> Path:
    wnids = ("n02", "n01")
    contents = {
        "tiny/words.txt": b"n01\tgoldfish, Carassius\nn09\tother",
        "tiny/val/val_annotations.txt": b"val_0.JPEG\tn01\t0\t0\t9\t9\nval_1.JPEG\tn02\t0\t0\t9\t9\n",
    }
    for label, wnid in enumerate(wnids):
        for index, image in enumerate(pictures(8, 64, 64, 3, seed=label)):
            image = image[..., :1] if index == 0 else image
            contents[f"tiny/train/{wnid}/images/{wnid}_{index}.JPEG"] = encode(image, "JPEG")
    for index, image in enumerate(pictures(2, 64, 64, 3, seed=9)):
        contents[f"tiny/val/images/val_{index}.JPEG"] = encode(image, "JPEG")
        contents[f"tiny/test/images/test_{index}.JPEG"] = encode(image, "JPEG")
    return write_zip(path, contents)


def orl(path: Path) -> Path:
    images = pictures(30, 112, 92, 1)
    members = {f"s{person}/{index}.pgm": images[person * 10 + index] for person in range(3) for index in range(10)}
    return write_zip(path, {"README": b"faces"} | {name: encode(image, "PPM") for name, image in members.items()})


def facescrub(path: Path) -> Path:
    images = pictures(24, 80, 70, 3)
    members = {f"faces/Person {p}/{index}.png": images[p * 8 + index] for p in range(3) for index in range(8)}
    members["faces/Person 0/again.png"] = images[0]
    return write_zip(path, {name: encode(image) for name, image in members.items()})
