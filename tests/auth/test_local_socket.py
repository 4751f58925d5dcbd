"""Where local commands find the hub of a data folder."""

import os
import socket
import stat
from pathlib import Path

import pytest

from gpulse.auth import local_socket
from gpulse.auth.local_socket import listening, place
from gpulse.errors import StoreError

URL = "http://127.0.0.1:7070/"


@pytest.fixture(autouse=True)
def _no_runtime_folder(monkeypatch):
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)


def found(folder, url):
    """Whether there is a hub for the URL."""
    connection = local_socket.connect(folder, url)
    if connection is not None:
        connection.close()
    return connection is not None


def test_for_its_owner_alone_and_gone_with_the_hub(tmp_path):
    old = os.umask(0)
    try:
        with listening(tmp_path, URL) as listener:
            assert listener.family == socket.AF_UNIX
            assert [stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir() if one.is_file()] == [0o600]
            socket_file = Path(place(tmp_path, URL).read_text().splitlines()[0])
            assert stat.S_IMODE(socket_file.stat().st_mode) == 0o600
            assert found(tmp_path, "http://localhost:7070")
    finally:
        os.umask(old)
    assert list(tmp_path.iterdir()) == []
    assert not socket_file.exists()
    assert not found(tmp_path, URL)


@pytest.mark.parametrize(
    ("listens", "url", "is_it"),
    [
        (URL, "http://127.0.0.1:7070", True),
        (URL, "http://[::1]:7070/gpu", True),
        (URL, "https://127.0.0.1:7070", True),
        (URL, "http://127.0.0.1:7071", False),
        (URL, "http://127.0.0.1", False),
        (URL, "https://127.0.0.1", False),
        ("http://0.0.0.0:7070/", "http://127.0.0.1:7070", True),
        ("http://[::]:7070/", "http://127.0.0.1:7070", True),
        ("http://10.0.0.7:7070/", "http://127.0.0.1:7070", False),
        ("https://127.0.0.1:443/", "https://127.0.0.1", True),
    ],
)
def test_which_hub_is_meant(tmp_path, listens, url, is_it):
    with listening(tmp_path, listens):
        assert found(tmp_path, url) is is_it
        assert local_socket.address(tmp_path) == listens


def test_two_hubs_on_one_folder(tmp_path):
    """As when somebody starts a second one to try something."""
    other = "https://127.0.0.1:7171/gpu"
    with listening(tmp_path, URL):
        os.utime(place(tmp_path, URL), (1, 1))
        with listening(tmp_path, other):
            assert found(tmp_path, URL)
            assert found(tmp_path, other)
            assert local_socket.address(tmp_path) == other, "the one that was started last"
        assert found(tmp_path, URL)
        assert not found(tmp_path, other)
        assert local_socket.address(tmp_path) == URL
        # At the same port of another address the one that was started last has the name.
        with listening(tmp_path, URL):
            assert found(tmp_path, URL)
    assert list(tmp_path.iterdir()) == []


def test_a_hub_that_was_killed_leaves_nothing_in_the_way(tmp_path):
    with listening(tmp_path, URL):
        record = place(tmp_path, URL).read_text()
    stale = tmp_path / "old"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(stale))
    place(tmp_path, URL).write_text(f"{stale}\n{URL}\n")
    assert not found(tmp_path, URL)
    (tmp_path / "cli-key-7070").write_text("of an older gpulse\n")
    assert local_socket.has_old_key(tmp_path, URL)
    with listening(tmp_path, URL):
        assert found(tmp_path, URL)
        assert place(tmp_path, URL).read_text() == record
    assert not local_socket.has_old_key(tmp_path, URL)


@pytest.mark.parametrize(
    "content", [b"", b"x", b"\xff\xfe\n\xff\n", b"/a\nb\nc\n", b"relative\nhttp://127.0.0.1:7070/\n"]
)
def test_a_file_that_is_none(tmp_path, content):
    place(tmp_path, URL).write_bytes(content)
    assert not found(tmp_path, URL)
    assert local_socket.address(tmp_path) is None


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "none"):
        with pytest.raises(StoreError, match="local-7070 cannot be written"):
            listening(folder, URL).__enter__()
        assert not found(folder, URL)
