"""FaceScrub from its list of links."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from attcem.data import get_data, load_data
from attcem.data.facescrub import fetch_faces, read_links
from attcem.data.source import Source
from tests.data import tiny_archives as tiny

PICTURES = [tiny.encode(image) for image in tiny.pictures(16, 100, 90, 3)]
BOX = "10,20,74,84"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        name = self.path.strip("/")
        body = PICTURES[int(name)] if name.isdigit() else b"<html>for sale</html>"
        self.send_response(404 if name == "gone" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.asked = []
        running.url = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield running
        running.shutdown()


def line(server, person: str, name: str, picture: int, box: str = BOX) -> str:
    return "\t".join([person, "1", "2", f"{server.url}/{name}", box, hashlib.sha256(PICTURES[picture]).hexdigest()])


@pytest.fixture
def lists(server, tmp_path):
    """Two lists with 16 live links and 3 dead ones."""
    folder = tmp_path / "lists"
    folder.mkdir()
    header = "name\timage_id\tface_id\turl\tbbox\tsha256"
    actors = [line(server, "Ann A", str(index), index) for index in range(8)]
    actresses = [line(server, "../Bob", str(index), index) for index in range(8, 16)]
    dead = [
        line(server, "Ann A", "gone", 0),
        line(server, "Ann A", "sold", 0),
        line(server, "Ann A", "1", 1, "95,0,99,9"),
    ]
    (folder / "facescrub_actors.txt").write_text("\n".join([header, *actors, *dead]))
    (folder / "facescrub_actresses.txt").write_text("\n".join([header, *actresses, ""]))
    return folder


def test_from_the_folder_with_both_lists(lists, tmp_path, caplog):
    written = get_data("facescrub", root=tmp_path / "cache", source=lists)
    assert "16 of 19 links" in caplog.text
    assert list((tmp_path / "cache").iterdir()) == [written]
    source = Source.read(written)
    assert source.class_names == ("../Bob", "Ann A") and np.bincount(source.y_train).tolist() == [8, 8]
    first = source.x_train[source.y_train == 1][0]
    assert np.array_equal(first, tiny.pictures(16, 100, 90, 3)[0][20:84, 10:74]), "the official box, pixel by pixel"
    assert load_data("facescrub", root=tmp_path / "cache").shape == (3, 64, 64)


def test_goes_on_after_an_interruption(lists, server, tmp_path):
    links = list(read_links(lists / "facescrub_actors.txt"))
    fetch_faces(links, tmp_path / "cache" / "facescrub.part", progress=False)
    server.asked.clear()
    get_data("facescrub", root=tmp_path / "cache", source=lists)
    assert sorted(server.asked) == sorted(f"/{index}" for index in range(8, 16)), "neither faces nor dead links again"


def test_no_link_alive(server, tmp_path):
    (tmp_path / "list.txt").write_text(line(server, "Ann A", "gone", 0))
    with pytest.raises(ValueError, match="none of the 1 links"):
        get_data("facescrub", root=tmp_path / "cache", source=tmp_path / "list.txt")
    assert not list((tmp_path / "cache").iterdir())


@pytest.mark.parametrize(
    "text", ["Ann A\t1\t2\thttp://a/b\t1,2,3,4", "a\t1\t2\tu\t1,2,3\t" + "0" * 64, "hello", "a\t1\t2\tu\t1,2,3,4\tx"]
)
def test_damaged_list(text, tmp_path):
    (tmp_path / "list.txt").write_text(f"name\n{text}\n")
    with pytest.raises(ValueError, match=r"list\.txt, line 2"):
        get_data("facescrub", root=tmp_path / "cache", source=tmp_path / "list.txt")


def test_without_a_list_it_explains(tmp_path):
    with pytest.raises(ValueError, match=r"vintage\.winklerbros\.net.*--from"):
        get_data("facescrub", root=tmp_path)
    with pytest.raises(ValueError, match=r"does not exist.*--from"):
        get_data("facescrub", root=tmp_path, source=tmp_path / "none")


def test_from_a_folder_of_people(tmp_path):
    for person, start in (("Ann", 0), ("Bob", 8)):
        (tmp_path / "faces" / person).mkdir(parents=True)
        for index in range(8):
            (tmp_path / "faces" / person / f"{index}.png").write_bytes(PICTURES[start + index])
    source = Source.read(get_data("facescrub", root=tmp_path / "cache", source=tmp_path / "faces"))
    assert source.x_train.shape == (16, 64, 64, 3) and source.class_names == ("Ann", "Bob")
    with pytest.raises(ValueError, match="leave --checksum out"):
        get_data("facescrub", root=tmp_path, source=tmp_path / "faces", checksum="md5:" + "0" * 32)
