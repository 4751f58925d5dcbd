"""What every answer forbids the browser, whatever was asked and whoever answers."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from gpulse.api.application import create_app
from gpulse.api.page import BUILT, OwnFiles
from gpulse.config import Web
from tests.api.asking import ask
from tests.api.fleets import small
from tests.api.people import make_people, open_access

NOT_BUILT = Path("/nonexistent")
ACCEPT = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def applications(folder: Path) -> Iterator[Starlette]:
    """With and without a built page, open to all and to nobody, at a sub-path, and with files of a site."""
    (folder / "logo.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    own = OwnFiles.read(Web(logo=folder / "logo.svg"))
    yield create_app(small(), access=open_access(), own_files=own, built_page=BUILT)
    yield create_app(small(), access=open_access(), built_page=NOT_BUILT, base_path="/gpulse")
    people = make_people(folder / "people")
    try:
        yield create_app(small(), access=people.access(), origins=["https://portal.example.org"])
    finally:
        people.records.close()


def paths(app: Starlette) -> list[str]:
    """Every address there is, with names that exist, and some that do not."""
    names = {"node": "gpu1", "gpu": "GPU-gpu1-0", "person": "alice"}
    found = {route.path for route in app.routes if isinstance(route, Route)}
    filled = [re.sub(r"\{(\w+)[^}]*\}", lambda part: names.get(part[1], "<b>odd</b>"), path) for path in sorted(found)]
    return [*filled, "/nowhere", "/<script>alert(1)</script>", "/api/v1/nodes?q=<b>odd", "/api/docs/<b>odd"]


def answers(folder: Path) -> Iterator[tuple[str, httpx.Response]]:
    for app in applications(folder):
        for path in paths(app):
            for method in ("GET", "POST", "DELETE", "OPTIONS", "TRACE"):
                yield f"{method} {path}", ask(app, path, method, ACCEPT)
        # A host that is not ours is refused before all that.
        yield "another host", ask(app, "/", headers={**ACCEPT, "Host": "cats.example"})


def directives(policy: str) -> dict[str, list[str]]:
    parts = [part.split() for part in policy.split(";") if part.strip()]
    return {part[0]: part[1:] for part in parts}


@pytest.fixture(scope="module")
def all_answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, httpx.Response]]:
    return list(answers(tmp_path_factory.mktemp("answers")))


def test_no_script_but_the_hubs_own_files(all_answers: list[tuple[str, httpx.Response]]):
    """On every answer, not only on those that say they are HTML."""
    pages = 0
    for told, answer in all_answers:
        policy = directives(answer.headers["content-security-policy"])
        assert policy["default-src"] == ["'none'"], told
        assert policy.get("script-src", []) in ([], ["'self'"]), told
        assert not {"script-src-elem", "script-src-attr", "object-src", "worker-src"} & set(policy), told
        if answer.headers.get("content-type", "").startswith("text/html") and answer.content:
            pages += 1
            assert policy["base-uri"] == policy["form-action"] == ["'none'"], told
            assert policy["frame-ancestors"] == ["'self'"], told
            # Nothing that such a policy would stop: then nobody is tempted to widen it.
            assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>|\son\w+=|javascript:", answer.text, re.IGNORECASE), told
    assert pages >= 4


def test_types_frames_referrers_and_caches(all_answers: list[tuple[str, httpx.Response]]):
    for told, answer in all_answers:
        assert answer.headers["x-content-type-options"] == "nosniff", told
        assert answer.headers["x-frame-options"] == "SAMEORIGIN", told
        assert answer.headers["referrer-policy"] == "same-origin", told
        assert answer.headers["cross-origin-resource-policy"] == "same-origin", told
        assert "cache-control" in answer.headers, told
        assert "server" not in answer.headers, told
        assert "access-control-allow-origin" not in answer.headers, told


def test_what_is_not_html_is_not_called_so(all_answers: list[tuple[str, httpx.Response]]):
    """What was asked for stands in many an answer, and must never be read as HTML."""
    for told, answer in all_answers:
        if "<b>odd" in answer.text or "<script>alert" in answer.text:
            assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/plain"), told
