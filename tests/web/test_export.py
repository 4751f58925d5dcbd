"""The exported site in a real browser, from file://: what was there is there, and a wrong address is told of."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.cli.hub import GPULSE
from tests.hub.running import RunningHub
from tests.patience import PATIENCE_SECONDS
from tests.web.browsing import Seen, visit


@pytest.fixture(scope="module")
def exported(demo: RunningHub, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("site")
    # The first step of ten seconds is then over, and there is a past to show.
    node = next(one["name"] for one in demo.get("api/v1/nodes")["items"] if one["state"] == "up")
    demo.until(lambda: any(set(gpu["power"]) != {65535} for gpu in demo.get("api/v1/history", node=node)["gpus"]))
    subprocess.run([*GPULSE, "export", str(folder), "--hub", demo.url], check=True, timeout=PATIENCE_SECONDS)
    return (Path(folder) / "index.html").as_uri()


@pytest.fixture
def seen(browser: Browser, exported: str) -> Iterator[Seen]:
    with visit(browser, exported) as found:
        yield found
        assert found.complaints == []


def test_the_fleet_and_its_last_minutes(seen: Seen):
    seen.page.goto(seen.url + "#/?view=cards")
    expect(seen.page.locator("article").first).to_be_visible()
    # The small lines of the last minutes beside the bars.
    expect(seen.page.locator("article svg path.line:not([d=''])").first).to_be_attached()
    expect(seen.page.get_by_role("region", name="Needs attention")).not_to_contain_text("Nothing: all nodes answer")


def test_a_node_with_its_charts_and_its_log(seen: Seen, demo: RunningHub):
    node = next(one for one in demo.get("api/v1/nodes")["items"] if one["state"] == "up" and one["gpus"])
    seen.page.goto(f"{seen.url}#/nodes/{node['name']}")
    page = seen.page
    expect(page.get_by_role("region", name="The last ten minutes").locator(".uplot").first).to_be_visible()
    expect(page.get_by_label(f"Log of {node['name']}").get_by_role("listitem").first).to_contain_text("up")
    page.goto(f"{seen.url}#/gpus/{node['gpus'][0]['id']}")
    expect(page.locator(".uplot").first).to_be_visible()


def test_a_wrong_name(seen: Seen):
    seen.page.goto(seen.url + "#/nodes/gpu0l")
    expect(seen.page.get_by_text("Did you mean").get_by_role("link", name="gpu01", exact=True)).to_be_visible()
