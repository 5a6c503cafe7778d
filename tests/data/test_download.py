"""Official files come from a server on this machine that behaves well, badly, or not at all."""

import hashlib
import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from lemmata import data
from lemmata.cli import main
from lemmata.data import download as module
from lemmata.data.catalogue import CATALOGUE, Official
from lemmata.data.download import download
from lemmata.errors import BadInput
from tests.data.layouts import idx_files, made_images, shrunk

BODY = bytes(range(256)) * 600
GOOD = hashlib.sha256(BODY).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers by the first word of the path: good, missing, busy, cut, once (cut off once), endless, hang; or a file."""

    hung: threading.Event
    released: threading.Event
    asked: list[str]
    files: dict[str, bytes]

    def do_GET(self):
        self.asked.append(self.path)
        word = self.path.split("/")[1]
        body = self.files.get(self.path.rpartition("/")[2], BODY)
        if word in ("missing", "busy"):
            return self.send_error({"missing": 404, "busy": 503}[word])
        cut = word == "cut" or (word == "once" and self.asked.count(self.path) == 1)
        self.send_response(200)
        if word != "endless":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut or word == "hang" else body)
        if word == "hang":
            self.wfile.flush()
            self.hung.set()
            self.released.wait(60)
        return None

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(module, "PAUSE", 0.0)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    handler = type(
        "Own",
        (Handler,),
        {"asked": [], "files": {}, "hung": threading.Event(), "released": threading.Event()},
    )
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.asked, running.files, running.hung = handler.asked, handler.files, handler.hung
        running.at = f"http://127.0.0.1:{running.server_address[1]}"
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        handler.released.set()
        running.shutdown()
        thread.join()


def official(server, *words, sha256=GOOD, limit=1 << 20):
    return Official("file.bin", tuple(f"{server.at}/{word}/file.bin" for word in words), sha256, limit)


def dead():
    """An address of this machine at which no server listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_a_good_file_comes_whole_in_one_try(server, tmp_path, capsys):
    path = download(official(server, "good"), tmp_path)
    assert path.read_bytes() == BODY
    assert server.asked == ["/good/file.bin"]
    assert [one.name for one in tmp_path.iterdir()] == ["file.bin"]
    assert capsys.readouterr().err == "lemmata: file.bin: 0.2 of 0.2 MB\n"


def test_downloaded_files_are_private(server, tmp_path):
    old = os.umask(0)
    try:
        path = download(official(server, "good"), tmp_path)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_of_the_wrong_checksum_is_thrown_away(server, tmp_path):
    with pytest.raises(BadInput, match=f"the sha256 is {GOOD}, not {'0' * 64}"):
        download(official(server, "good", sha256="0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert len(server.asked) == 1


def test_a_file_without_a_known_checksum_is_taken(server, tmp_path):
    assert download(official(server, "good", sha256=None), tmp_path).read_bytes() == BODY


def test_a_file_that_is_cut_off_is_tried_again(server, tmp_path):
    assert download(official(server, "once"), tmp_path).read_bytes() == BODY
    assert len(server.asked) == 2


def test_three_tries_are_all_for_a_file_that_is_always_cut_off(server, tmp_path):
    with pytest.raises(BadInput, match="76800"):
        download(official(server, "cut", sha256=None), tmp_path)
    assert len(server.asked) == 3
    assert list(tmp_path.iterdir()) == []


def test_a_server_with_an_error_is_tried_three_times(server, tmp_path):
    with pytest.raises(BadInput, match="Service Unavailable"):
        download(official(server, "busy"), tmp_path)
    assert len(server.asked) == 3


def test_a_missing_file_is_asked_for_once_and_the_mirror_gives_it(server, tmp_path):
    with pytest.raises(BadInput, match="HTTP 404"):
        download(official(server, "missing"), tmp_path)
    assert server.asked == ["/missing/file.bin"]
    assert download(official(server, "missing", "good"), tmp_path).read_bytes() == BODY


def test_a_dead_mirror_leads_to_the_next(server, tmp_path):
    file = replace(official(server, "good"), addresses=(f"{dead()}/file.bin", f"{server.at}/good/file.bin"))
    assert download(file, tmp_path).read_bytes() == BODY


@pytest.mark.parametrize("word", ["good", "endless"])
def test_a_file_that_is_too_large_is_not_received(server, tmp_path, word):
    with pytest.raises(BadInput, match="more than 1000 bytes"):
        download(official(server, word, limit=1000), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_encrypted_address_that_leads_to_an_open_one_is_refused(server, tmp_path, monkeypatch):
    reached = module.urllib.request.urlopen(f"{server.at}/good/file.bin")
    monkeypatch.setattr(module.urllib.request, "urlopen", lambda *_, **__: reached)
    file = replace(official(server, "good"), addresses=("https://example.org/file.bin",))
    with pytest.raises(BadInput, match="without encryption"):
        download(file, tmp_path)
    assert list(tmp_path.iterdir()) == []


def offered(monkeypatch, server, arrays, at):
    """MNIST with made files, which the server has, at some addresses; pinned by their true checksums."""
    files = idx_files(arrays)
    server.files |= files
    shrunk(monkeypatch, "mnist", arrays)
    pinned = tuple(
        Official(name, tuple(f"{one}/{name}" for one in at), hashlib.sha256(body).hexdigest(), 1 << 20)
        for name, body in files.items()
    )
    monkeypatch.setitem(CATALOGUE, "mnist", replace(CATALOGUE["mnist"], files=pinned))


def test_get_downloads_reads_and_stores(server, home, monkeypatch, capsys):
    arrays = made_images()
    offered(monkeypatch, server, arrays, [f"{server.at}/good"])
    assert main(["data", "get", "mnist"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{home / 'mnist.npz'}\n"
    assert err.splitlines()[0].startswith("lemmata: MNIST")
    assert "licence: LeCun" in err.splitlines()[0]
    loaded = data.load("mnist")
    assert set(loaded) == set(arrays)
    assert all((loaded[name] == arrays[name]).all() for name in arrays)
    assert [one["pinned"] for one in data.provenance("mnist")["made_from"]] == [True] * 4
    assert [one.name for one in home.iterdir()] == ["mnist.npz"]


def test_without_a_network_get_names_the_address_and_the_other_way(home, monkeypatch, server, capsys):
    nowhere = dead()
    offered(monkeypatch, server, made_images(), [nowhere])
    assert main(["data", "get", "mnist"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert f"{nowhere}/train-images-idx3-ubyte.gz" in last
    assert last.endswith("if you have it, `lemmata data get mnist --from PATH`.")
    assert list(home.iterdir()) == []


INTERRUPTED = """
import sys
from dataclasses import replace
from lemmata.cli import main
from lemmata.data.catalogue import CATALOGUE, Official

CATALOGUE["mnist"] = replace(CATALOGUE["mnist"], files=(Official("file.bin", (sys.argv.pop(),), None, 1 << 20),))
main()
"""


def test_a_download_that_is_interrupted_leaves_nothing_behind(server, home):
    words = [sys.executable, "-c", INTERRUPTED, "data", "get", "mnist", f"{server.at}/hang/file.bin"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as command:
        assert server.hung.wait(60)
        assert [one.name.startswith(".mnist.") for one in home.iterdir()] == [True]
        command.send_signal(signal.SIGINT)
        assert "interrupted" in command.communicate(timeout=60)[1]
    assert command.returncode == 130
    assert list(home.iterdir()) == []


def test_what_is_here_needs_no_network(home, monkeypatch, server):
    arrays = made_images()
    offered(monkeypatch, server, arrays, [f"{server.at}/good"])
    data.get("mnist")
    asked = len(server.asked)
    data.load("mnist")
    data.provenance("mnist")
    assert main(["data", "verify", "mnist"]) == 0
    assert len(server.asked) == asked
