"""The page and its files: how they are sent, what a site can set, and who else may read."""

import gzip
import re
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from gpulse.api.application import create_app
from gpulse.api.page import OwnFiles
from gpulse.api.security import as_origin
from gpulse.config import Web
from gpulse.errors import ConfigError
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import open_access

PORTAL = "https://portal.example.org"
SCRIPT = "console.log('gpulse');\n" * 100


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A page as Vite builds it."""
    files = {
        "index.html": '<!doctype html><link rel="stylesheet" href="./assets/index-B1x2.css">'
        '<script type="module" src="./assets/index-Ab12.js"></script><link rel="icon" href="./icon.svg">',
        "icon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
        "config.json": '{"hub": "https://elsewhere.example.org"}',
        "assets/index-Ab12.js": SCRIPT,
        "assets/index-Ab12.js.map": "{}",
        "assets/index-B1x2.css": "body { color: red }",
        "assets/inter-C3.woff2": "font",
    }
    for name, text in files.items():
        path = tmp_path / "web" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "web"


@pytest.fixture
def app(built: Path) -> Starlette:
    return create_app(small(), access=open_access(), built_page=built)


@pytest.mark.parametrize(
    ("path", "media"),
    [
        ("/", "text/html"),
        ("/icon.svg", "image/svg+xml"),
        ("/assets/index-Ab12.js", "text/javascript"),
        ("/assets/index-B1x2.css", "text/css"),
        ("/assets/inter-C3.woff2", "font/woff2"),
        ("/config.json", "application/json"),
    ],
)
def test_every_file_has_its_type_and_the_policy(app: Starlette, path: str, media: str):
    response = ask(app, path)
    assert response.status_code == 200
    assert response.headers["content-type"].split(";")[0] == media
    policy = dict(part.strip().split(" ", 1) for part in response.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in response.headers["content-security-policy"]


def test_names_with_a_hash_are_kept_for_good_and_the_rest_is_asked_for_each_time(app: Starlette):
    assert ask(app, "/assets/index-Ab12.js").headers["cache-control"] == "public, max-age=31536000, immutable"
    for path in ("/", "/icon.svg", "/config.json"):
        first = ask(app, path)
        assert "no-cache" in first.headers["cache-control"]
        again = ask(app, path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        for name in ("content-security-policy", "cache-control"):
            assert again.headers[name] == first.headers[name]


def test_files_are_compressed_for_those_who_can(app: Starlette):
    packed = ask(app, "/assets/index-Ab12.js", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(gzip.compress(SCRIPT.encode(), 9))
    assert packed.text == ask(app, "/assets/index-Ab12.js", headers={"Accept-Encoding": "identity"}).text == SCRIPT


def test_maps_of_the_sources_are_not_served(app: Starlette):
    assert ask(app, "/assets/index-Ab12.js.map").status_code == 404
    assert ask(app, "/index.html").status_code == 404


@pytest.mark.parametrize("path", ["/", "/api/docs"])
def test_a_page_loads_from_the_hub_alone_and_by_relative_addresses(app: Starlette, path: str):
    html = ask(app, path).text
    addresses = re.findall(r'(?:src|href)="([^"]+)"', html)
    assert len(addresses) >= 3
    for address in addresses:
        assert not re.match(r"[a-z]+:|/", address), address
        assert ask(app, path.rsplit("/", 1)[0] + "/" + address).status_code == 200, address


def test_under_a_sub_path(built: Path):
    app = create_app(small(), access=open_access(), base_path="/gpulse", built_page=built)
    assert ask(app, "/gpulse/assets/index-Ab12.js").text == SCRIPT
    assert ask(app, "/gpulse/config.json").json()["hub"] == ""
    assert ask(app, "/assets/index-Ab12.js").status_code == 404


def test_a_page_that_is_not_built_says_how_to_build_it(tmp_path: Path):
    app = create_app(small(), access=open_access(), built_page=tmp_path / "nothing")
    page = ask(app, "/")
    assert page.status_code == 200
    assert "make web" in page.text
    assert "wheel" in page.text
    assert "<script" not in page.text
    for address in re.findall(r'href="([^"]+)"', page.text):
        assert ask(app, "/" + address).status_code == 200
    assert ask(app, "/config.json").status_code == 200


def test_the_hub_says_whose_page_it_is(app: Starlette):
    # Not what the built page has for those who put it elsewhere.
    assert ask(app, "/config.json").json() == {"hub": "", "title": "gpulse", "logo": None, "custom_css": False}
    assert ask(app, "/logo").status_code == 404
    assert ask(app, "/custom.css").status_code == 404


def test_title_logo_and_style_of_a_site(built: Path, tmp_path: Path):
    (tmp_path / "our.SVG").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    (tmp_path / "our.css").write_text(":root { --accent: teal }")
    own = OwnFiles.read(Web(logo=tmp_path / "our.SVG", custom_css=tmp_path / "our.css"))
    app = create_app(small(), access=open_access(), title='Lab "7" </script>', own_files=own, built_page=built)
    told = ask(app, "/config.json").json()
    assert told == {"hub": "", "title": 'Lab "7" </script>', "logo": "logo", "custom_css": True}
    logo = ask(app, "/logo")
    assert logo.headers["content-type"] == "image/svg+xml"
    # Opened by itself, a picture is a document: it must not run anything.
    assert "default-src 'none'" in logo.headers["content-security-policy"]
    assert "script-src" not in logo.headers["content-security-policy"]
    style = ask(app, "/custom.css")
    assert style.headers["content-type"].startswith("text/css")
    assert style.text == ":root { --accent: teal }"


@pytest.mark.parametrize(
    ("web", "words"),
    [
        (Web(logo=Path("/nowhere/logo.svg")), "web.logo: /nowhere/logo.svg cannot be read (No such file or directory)"),
        (Web(logo=Path("/nowhere/logo.gif")), "web.logo: /nowhere/logo.gif is no picture"),
        (Web(custom_css=Path("/proc")), "web.custom_css: /proc cannot be read (Is a directory)"),
    ],
)
def test_files_that_are_not_there(web: Web, words: str):
    with pytest.raises(ConfigError) as caught:
        OwnFiles.read(web)
    assert str(caught.value).startswith(words)


def from_site(origin: str | None, path: str, *origins: str, method: str = "GET") -> httpx.Response:
    app = create_app(small(), access=open_access(), origins=origins)
    return ask(app, path, method, headers={} if origin is None else {"Origin": origin})


@pytest.mark.parametrize("path", ["/api/v1/summary", "/api/v1/nodes/none", "/config.json", "/api/v1/nodes?limit=5"])
def test_pages_of_sites_in_the_list_may_read(path: str):
    let_in = from_site(PORTAL, path, "http://other.example.org", PORTAL)
    assert let_in.headers["access-control-allow-origin"] == PORTAL
    assert let_in.headers["cross-origin-resource-policy"] == "cross-origin"
    assert "access-control-allow-credentials" not in let_in.headers
    assert "Origin" in let_in.headers["vary"]
    for stranger in ("https://portal.example.org.evil.example", "http://portal.example.org", "null", None):
        refused = from_site(stranger, path, PORTAL)
        assert "access-control-allow-origin" not in refused.headers, stranger
        assert refused.headers["cross-origin-resource-policy"] == "same-origin"
        assert "Origin" in refused.headers["vary"], "a cache must not mix them up"


def test_without_a_list_nobody_else_reads():
    response = from_site(PORTAL, "/api/v1/summary")
    assert "access-control-allow-origin" not in response.headers
    assert "Origin" not in response.headers["vary"]


def test_nobody_else_may_do_more_than_read():
    asked_first = from_site(PORTAL, "/api/v1/ingest", PORTAL, method="OPTIONS")
    assert asked_first.status_code == 405
    assert "access-control-allow-methods" not in asked_first.headers
    assert "access-control-allow-headers" not in asked_first.headers


def test_sites_are_compared_as_browsers_write_them():
    assert as_origin("HTTPS://Portal.Example.org:443") == PORTAL
    assert as_origin("http://[::1]:80") == "http://[::1]"
    assert as_origin("http://portal.example.org:443") == "http://portal.example.org:443"
    assert as_origin("http://x:99999999") == "http://x:99999999"
    assert from_site(PORTAL, "/config.json", PORTAL + ":443").headers["access-control-allow-origin"] == PORTAL
