"""Hostile and damaged archives: refused with a sentence, and nothing is left behind."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from attcem.data import get_data
from attcem.data.archive import members
from tests.data import tiny_archives as tiny


def tar_of(path: Path, *infos: tarfile.TarInfo, size: int = 0) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info in infos:
            info.size = size
            archive.addfile(info, io.BytesIO(bytes(size)))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of_mode(path: Path, mode: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("s1/1.pgm")
        info.create_system, info.external_attr = 3, mode << 16
        archive.writestr(info, "/etc/passwd")
    return path


def zip_twice(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"1")
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("a", b"2")
    return path


def truncated(path: Path, keep: float) -> Path:
    content = tiny.cifar10_binary(path).read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    return path


def truncated_zip(path: Path) -> Path:
    content = tiny.orl(path).read_bytes()
    path.write_bytes(content[:-100])
    return path


def flipped(path: Path) -> Path:
    content = bytearray(tiny.orl(path).read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    return path


def broken_header(path: Path) -> Path:
    """A damaged second header, which tarfile takes for the end of the archive."""
    tar_of(path, entry("a"), entry("b"))
    content = bytearray(gzip.decompress(path.read_bytes()))
    content[512:600] = b"x" * 88
    path.write_bytes(gzip.compress(bytes(content)))
    return path


def cut_at_a_header(path: Path) -> Path:
    tar_of(path, entry("a"), entry("b"))
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:1024]))
    return path


def wrong_gzip_sum(path: Path) -> Path:
    content = bytearray(tar_of(path, entry("a")).read_bytes())
    content[-8] ^= 255
    path.write_bytes(content)
    return path


def boastful(path: Path) -> Path:
    """A header that claims far more than the archive holds."""
    info = entry("a")
    info.size = 1 << 40
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)))
    return path


def lying_zip(path: Path) -> Path:
    """A member whose directory entry claims fewer bytes than it unpacks to."""
    content = bytearray(tiny.write_zip(path, {"a": bytes(100_000)}).read_bytes())
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = content.index(signature) + offset
        content[at : at + 4] = struct.pack("<I", 10)
    path.write_bytes(content)
    return path


HOSTILE = {
    "traversal": (lambda path: tar_of(path, entry("a/../../evil")), "points outside"),
    "absolute": (lambda path: tar_of(path, entry("/etc/evil")), "points outside"),
    "backslashes": (lambda path: tiny.write_tar(path, {"..\\evil": b""}), "points outside"),
    "drive": (lambda path: tiny.write_tar(path, {"C:/evil": b""}), "points outside"),
    "traversing folder": (lambda path: tar_of(path, entry("../evil", tarfile.DIRTYPE)), "points outside"),
    "symlink": (lambda path: tar_of(path, entry("a", tarfile.SYMTYPE, "/etc/passwd")), "link or a device"),
    "hardlink": (lambda path: tar_of(path, entry("a", tarfile.LNKTYPE, "b")), "link or a device"),
    "device": (lambda path: tar_of(path, entry("a", tarfile.CHRTYPE)), "link or a device"),
    "fifo": (lambda path: tar_of(path, entry("a", tarfile.FIFOTYPE)), "link or a device"),
    "twice": (lambda path: tar_of(path, entry("a"), entry("./a")), "twice"),
    "boastful": (boastful, "more than"),
    "zip traversal": (lambda path: tiny.write_zip(path, {"../evil": b""}), "points outside"),
    "zip absolute": (lambda path: tiny.write_zip(path, {"/evil": b""}), "points outside"),
    "zip symlink": (lambda path: zip_of_mode(path, 0o120777), "link or a device"),
    "zip device": (lambda path: zip_of_mode(path, 0o020666), "link or a device"),
    "zip twice": (zip_twice, "twice"),
    "lying zip": (lying_zip, "truncated or corrupt"),
    "truncated": (lambda path: truncated(path, 0.5), "truncated or corrupt"),
    "truncated by a byte": (lambda path: truncated(path, 0.999999), "truncated or corrupt"),
    "truncated zip": (truncated_zip, "truncated or corrupt"),
    "flipped": (flipped, "truncated or corrupt"),
    "broken header": (broken_header, "truncated or corrupt"),
    "cut at a header": (cut_at_a_header, "truncated or corrupt"),
    "wrong gzip sum": (wrong_gzip_sum, "truncated or corrupt"),
    "text": (lambda path: path.write_text("<html>") and path, "truncated or corrupt"),
    "empty": (lambda path: path.touch() or path, "truncated or corrupt"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("name", ["cifar10", "orl"])
def test_hostile_archives(name, case, tmp_path):
    build, message = HOSTILE[case]
    archive = build(tmp_path / "archive")
    root = tmp_path / "cache"
    root.mkdir()
    (root / "other").touch()
    with pytest.raises(ValueError, match=message):
        get_data(name, root=root, source=archive, checksum=tiny.sha256(archive))
    assert [file.name for file in root.iterdir()] == ["other"]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["archive", "cache"]


@pytest.mark.parametrize("write", [tiny.write_tar, tiny.write_zip])
def test_bombs(write, tmp_path):
    bomb = write(tmp_path / "bomb", {f"{index}": bytes(1 << 20) for index in range(4)})
    assert bomb.stat().st_size < 1 << 16
    with pytest.raises(ValueError, match="more than 1,000,000"):
        list(members(bomb, member_cap=1_000_000))
    with pytest.raises(ValueError, match="more than 3,000,000"):
        list(members(bomb, total_cap=3_000_000))
    assert [len(content) for _, content in members(bomb)] == [1 << 20] * 4


def test_bomb_hidden_in_a_long_name(tmp_path):
    header = entry("././@LongLink", tarfile.GNUTYPE_LONGNAME)
    header.size = 1 << 24
    bomb = tmp_path / "bomb"
    bomb.write_bytes(gzip.compress(header.tobuf(tarfile.GNU_FORMAT) + b"a" * (1 << 24)))
    with pytest.raises(ValueError, match="more than"):
        list(members(bomb, member_cap=1 << 20))


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_honest_tar(mode, tmp_path):
    contents = {"./a/b": b"1" * 5000, "c" * 200: b"", "d": b"22"}
    archive = tiny.write_tar(tmp_path / "archive", contents, mode)
    assert list(members(archive)) == [("a/b", b"1" * 5000), ("c" * 200, b""), ("d", b"22")]


def test_honest_zip_with_folders(tmp_path):
    archive = tiny.write_zip(tmp_path / "archive", {"a/": b"", "a/b": b"12"})
    assert list(members(archive)) == [("a/b", b"12")]


def test_unknown_archive_needs_a_checksum(tmp_path):
    archive = tiny.cifar10_python(tmp_path / "archive")
    with pytest.raises(
        ValueError, match=rf"{tiny.sha256(archive)} and should have sha256:6d958.* or md5:c32a.*--checksum"
    ):
        get_data("cifar10", root=tmp_path / "cache", source=archive)
    with pytest.raises(ValueError, match="should have md5:0000"):
        get_data("cifar10", root=tmp_path / "cache", source=archive, checksum="md5:" + "0" * 32)
    assert archive.exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize("checksum", ["sha1:00", "sha256:12", "md5:" + "g" * 32, "0" * 64])
def test_misspelt_checksum(checksum, tmp_path):
    archive = tiny.orl(tmp_path / "archive")
    with pytest.raises(ValueError, match=r"sha256|md5"):
        get_data("orl", root=tmp_path, source=archive, checksum=checksum)


def test_archive_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="is not a file"):
        get_data("orl", root=tmp_path, source=tmp_path)
