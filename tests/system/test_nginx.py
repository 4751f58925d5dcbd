"""The hub behind a real nginx, under a sub-path that it takes away or leaves; and another site in a browser."""

import asyncio
import contextlib
import http.server
import json
import queue
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import websockets

from tests.chromium import opened
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.ports import free_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "api.md"
CONFIG = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {beside}
    server {{
        listen 127.0.0.1:{port};
        {location}
    }}
}}
"""
# A page that asks the hub and tells its own server what it got.
PROBE = """<!doctype html><meta charset="utf-8"><script type="module">
const { hub } = await (await fetch("config.json")).json();
const read = async (got) => `${(await got.json()).nodes} nodes`;
const api = await fetch(hub + "api/v1/summary").then(read, () => "no");
const socket = new WebSocket(hub.replace("http", "ws") + "api/v1/live?format=json");
const live = await new Promise((resolve) => {
  socket.onmessage = (frame) => resolve(JSON.parse(frame.data).type);
  socket.onerror = () => resolve("no");
});
await fetch("told?" + new URLSearchParams({ api, live }));
</script>"""


def documented_location() -> str:
    """The piece of nginx's settings that the documentation shows."""
    text = DOCUMENT.read_text("utf-8").partition("## Behind a reverse proxy")[2]
    found = re.search(r"^    location .*?^    }$", text, re.DOTALL | re.MULTILINE)
    assert found
    return found[0]


@contextlib.contextmanager
def nginx(folder: Path, location: str, beside: str = "") -> Iterator[str]:
    """Its address; it is a plain process of ours, not a service. `beside` stands beside "server"."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None:
        pytest.skip("nginx is missing")
    port = free_port()
    config = folder / "nginx.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, location=location, beside=beside))
    process = subprocess.Popen([program, "-c", config, "-e", folder / "error.log"], stderr=subprocess.PIPE)
    try:
        end = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.TransportError:
                assert process.poll() is None, process.communicate()[1].decode()
                assert time.monotonic() < end
                time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture(params=["taken away", "left"])
def behind(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of the page behind nginx."""
    leaves = request.param == "left"
    text = '[hub]\nlocal = false\n[access]\nanonymous = "read"\n[web]\ntitle = "Lab 7"\n'
    text += 'base_path = "/gpulse"\n' if leaves else ""
    (tmp_path / "gpulse.toml").write_text(text)
    with RunningHub("up", directory=tmp_path) as hub:
        address = hub.url.removesuffix("/").removesuffix("/gpulse")
        target = f"proxy_pass {address};" if leaves else f"proxy_pass {address}/;"
        location = documented_location().replace("proxy_pass http://127.0.0.1:7070/;", target)
        assert target in location
        with nginx(tmp_path, location) as front:
            yield f"{front}/gpulse/"


async def first_frame(address: str, **headers: str) -> Any:
    async with websockets.connect(address, additional_headers=headers, open_timeout=PATIENCE_SECONDS) as socket:
        return await asyncio.wait_for(socket.recv(), 30)


def test_page_api_and_live_stream_under_a_sub_path(behind: str):
    with httpx.Client(follow_redirects=False, timeout=PATIENCE_SECONDS) as client:
        page = client.get(behind)
        assert page.status_code == 200
        for address in re.findall(r'(?:src|href)="([^"#]+)"', page.text):
            assert not address.startswith("/"), address
            assert client.get(behind + address.removeprefix("./")).status_code == 200, address
        assert client.get(behind + "config.json").json()["title"] == "Lab 7"
        assert client.get(behind + "api/v1/summary").json()["nodes"] == 0
        packed = client.get(behind + "api/openapi.json", headers={"Accept-Encoding": "gzip"})
        assert packed.headers["content-encoding"] == "gzip"
        viewer = client.get(behind + "api/docs/")
        assert viewer.status_code == 308
        assert client.get(str(viewer.next_request.url)).status_code == 200, "seen from the browser"
        # Without the slash nginx sends people on by itself.
        assert client.get(behind.rstrip("/")).headers["location"].endswith("/gpulse/")
    socket = behind.replace("http", "ws", 1) + "api/v1/live?format="
    assert json.loads(asyncio.run(first_frame(socket + "json")))["type"] == "full"
    assert asyncio.run(first_frame(socket + "binary"))[:4] == b"GPLS"


def test_the_page_may_watch_and_a_strange_page_may_not(behind: str):
    socket = behind.replace("http", "ws", 1) + "api/v1/live"
    own = behind.removesuffix("/gpulse/")
    assert asyncio.run(first_frame(socket, Origin=own))
    with pytest.raises(websockets.InvalidStatus) as refused:
        asyncio.run(first_frame(socket, Origin="http://evil.example.org"))
    assert refused.value.response.status_code == 403


def test_through_a_proxy_nobody_reads_by_default(tmp_path: Path):
    """Though the hub listens on loopback, where everybody does; with nginx as it is documented."""
    (tmp_path / "gpulse.toml").write_text("hub.local = false\n")
    with RunningHub("up", directory=tmp_path) as hub:
        location = documented_location().replace("http://127.0.0.1:7070/", hub.url)
        # It listens before it answers.
        with nginx(tmp_path, location) as front, httpx.Client(timeout=PATIENCE_SECONDS) as client:
            behind = f"{front}/gpulse/"
            assert client.get(hub.url + "api/v1/summary").status_code == 200
            for path in ("api/v1/summary", "api/v1/nodes", "metrics", "free", "api/v1/live"):
                assert client.get(behind + path).status_code == 401, path
            # Who takes the headers for theirs makes them no fewer.
            for sent in ({"X-Forwarded-For": ""}, {"Connection": "X-Forwarded-For"}, {"X_Forwarded_For": "127.0.0.1"}):
                assert client.get(behind + "api/v1/summary", headers=sent).status_code == 401, sent
            assert client.get(behind + "api/v1/me").json()["may_read"] is False
            with pytest.raises(websockets.InvalidStatus) as refused:
                asyncio.run(first_frame(behind.replace("http", "ws", 1) + "api/v1/live"))
            assert refused.value.response.status_code == 401


class OtherSite:
    """A web server with nothing but files; `told` has what a page of it asked for at told?."""

    def __init__(self, folder: Path):
        told = self.told = queue.SimpleQueue[dict[str, str]]()

        class Files(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(folder))

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/told":
                    told.put(dict(parse_qsl(parts.query)))
                super().do_GET()

            def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name is given
                """Tests say themselves what matters."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> "OtherSite":
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize("allowed", [True, False])
def test_a_page_of_another_site_in_a_browser(tmp_path: Path, allowed: bool):
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "index.html").write_text(PROBE)
    with OtherSite(folder) as site:
        # Another port of the same host is another site.
        listed = site.origin if allowed else "http://127.0.0.1:1"
        (tmp_path / "gpulse.toml").write_text(f'[hub]\nlocal = false\n[web]\norigins = ["{listed}"]\n')
        with RunningHub("up", directory=tmp_path) as hub:
            (folder / "config.json").write_text(json.dumps({"hub": hub.url}))
            with opened(site.origin + "/index.html", tmp_path):
                told = site.told.get(timeout=PATIENCE_SECONDS)
    assert told == ({"api": "0 nodes", "live": "full"} if allowed else {"api": "no", "live": "no"})
