"""`make audit`: what was not audited is a failure, and says so."""

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from scripts import audit
from scripts.audit import NotAudited, judge_page, judge_python
from tests.patience import PATIENCE_SECONDS

WANTED = {"httpx": "0.28.1", "typing-extensions": "4.16.0"}
# As pip-audit 2.9.0 prints it.
CLEAN = [{"name": "httpx", "version": "0.28.1", "vulns": []}]
OTHER = {"name": "typing_extensions", "version": "4.16.0", "vulns": []}
HOLE = {"id": "PYSEC-2026-1", "fix_versions": ["0.28.2", "0.29.0"], "aliases": ["CVE-2026-1"], "description": "…"}
SKIPPED = {
    "name": "typing-extensions",
    "skip_reason": "Dependency not found on PyPI and could not be audited: typing-extensions (4.16.0)",
}
# As npm 11 prints it, where it is asked of a place that knows nothing of holes.
REFUSED = {
    "message": "405 Method Not Allowed - POST https://npm.example.org/-/npm/v1/security/advisories/bulk",
    "method": "POST",
    "statusCode": 405,
    "body": "",
    "error": {"summary": "", "detail": ""},
}


def told(*dependencies: Any) -> str:
    return json.dumps({"dependencies": dependencies, "fixes": []})


def report(total: int, **holes: Any) -> str:
    counts = {"info": 0, "low": 0, "moderate": 0, "high": len(holes), "critical": 0, "total": len(holes)}
    dependencies = {"prod": 1, "dev": total, "optional": 0, "peer": 0, "peerOptional": 0, "total": total}
    metadata = {"vulnerabilities": counts, "dependencies": dependencies}
    return json.dumps({"auditReportVersion": 2, "vulnerabilities": holes, "metadata": metadata})


def test_python_packages_without_holes():
    assert judge_python(told(*CLEAN, OTHER), "", WANTED) == []


def test_python_packages_with_one():
    found = judge_python(told(CLEAN[0] | {"vulns": [HOLE]}, OTHER), "Found 1 known vulnerability in 1 package", WANTED)
    assert found == ["httpx 0.28.1: PYSEC-2026-1, mended in 0.28.2, 0.29.0"]
    unmended = judge_python(told(CLEAN[0] | {"vulns": [HOLE | {"fix_versions": []}]}, OTHER), "", WANTED)
    assert "no version yet" in unmended[0]


@pytest.mark.parametrize(
    ("output", "said", "words"),
    [
        (told(*CLEAN, SKIPPED), "No known vulnerabilities found, 1 skipped", "did not look at 1 of 2 packages"),
        (told(*CLEAN), "", "typing-extensions 4.16.0 (no answer)"),
        (told(), "", "did not look at 2 of 2"),
        ("", "ERROR:pip_audit._cli:Could not connect to PyPI\n", "Could not connect to PyPI"),
        ("{}", "", "it said nothing"),
        ("[]", "", "it said nothing"),
    ],
)
def test_python_packages_that_were_not_looked_at(output: str, said: str, words: str):
    with pytest.raises(NotAudited) as caught:
        judge_python(output, said, WANTED)
    assert words in str(caught.value)


def test_nothing_to_look_at_is_no_success():
    with pytest.raises(NotAudited):
        judge_python(told(), "", {})
    with pytest.raises(NotAudited):
        judge_page(report(0), "", 0)


def test_packages_of_the_page():
    assert judge_page(report(300), "", 300) == []
    via = [{"source": 1, "title": "it opens", "url": "https://github.com/advisories/GHSA-1"}, "other"]
    found = judge_page(report(300, vite={"name": "vite", "severity": "high", "via": via}), "", 300)
    assert found == ["vite: https://github.com/advisories/GHSA-1, other (high)"]


@pytest.mark.parametrize(
    ("output", "said", "words"),
    [
        (json.dumps(REFUSED), "npm error audit endpoint returned an error", "405 Method Not Allowed"),
        (json.dumps({"error": {"code": "ENOLOCK", "summary": "it needs a lock file"}}), "", "it needs a lock file"),
        ("", "npm error network getaddrinfo ENOTFOUND", "ENOTFOUND"),
        ("found 0 vulnerabilities", "", "it said nothing"),
        (report(12), "", "looked at 12 packages, and 300 are locked"),
    ],
)
def test_packages_of_the_page_that_were_not_looked_at(output: str, said: str, words: str):
    with pytest.raises(NotAudited) as caught:
        judge_page(output, said, 300)
    assert words in str(caught.value)


class _Registry(BaseHTTPRequestHandler):
    """Knows of one hole."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        hole = {"id": 1, "url": "https://example.org/GHSA-1", "title": "it opens", "severity": "high"}
        body = json.dumps({"vite": [hole | {"vulnerable_versions": ">=0", "cwe": [], "cvss": {"score": 9}}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(404)

    def log_message(self, *_words: Any) -> None:
        """Nobody wants to read it."""


@contextmanager
def registry() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Registry) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()
            thread.join(PATIENCE_SECONDS)


@pytest.fixture
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Nothing of the person who runs the tests, and nothing left in the repository."""
    monkeypatch.setattr(audit, "ENVIRONMENT", tmp_path / "audit")
    # As an environment that is made already: making one takes longer than all the rest.
    pip = tmp_path / "audit" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@" --target "{tmp_path / "installed"}"\n')
    pip.chmod(0o700)
    settings = {"npm_config_cache": tmp_path / "npm", "npm_config_fetch_retries": "0", "PIP_RETRIES": "0"}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return monkeypatch


def test_npm_itself_looks_at_all_that_is_locked(own_settings: pytest.MonkeyPatch):
    with registry() as address:
        own_settings.setenv("npm_config_registry", address)
        # Who has set that would be told that there are no holes.
        own_settings.setenv("npm_config_offline", "true")
        found = audit.page_packages()
    assert any(one.startswith("vite: https://example.org/GHSA-1") for one in found)


def test_without_a_network_it_fails_and_says_so(own_settings: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    own_settings.setenv("npm_config_registry", "http://127.0.0.1:9/")
    own_settings.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert audit.main() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "Python packages: NOT AUDITED: pip-audit could not be installed: " in err
    assert "packages of the page: NOT AUDITED: npm audit has not answered: " in err
    assert err.count("needs the Internet") == 2


def test_what_one_audit_does_not_find_the_other_may(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for audits, code, words in (
        ({"a": list, "b": list}, 0, "b: known holes: none"),
        ({"a": lambda: ["x 1: hole"], "b": list}, 1, "a: known holes: 1\n  x 1: hole\nb: known holes: none"),
    ):
        monkeypatch.setattr(audit, "AUDITS", audits)
        assert audit.main() == code
        assert words in capsys.readouterr().out
