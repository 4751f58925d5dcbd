"""Many nodes with one token to join with: each gets its own, and they come back one after the other."""

import json
import subprocess
import time
from collections.abc import Iterator

import pytest

from tests.hub.running import GPULSE
from tests.patience import PATIENCE_SECONDS
from tests.system.agents import Agent, Site, snapshot, until

CROWD = 30
# In so short a time only some of them may come.
INSTANT_SECONDS = 0.1
# An agent that has lost its hub pauses for up to 60 s.
LONGEST_SECONDS = 80


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="module")
def join(site: Site) -> str:
    return site.token_command("create", "--join", f"gpu[01-{CROWD}]", "--expires", "1d")


@pytest.fixture(scope="module")
def hall(site: Site) -> str:
    """A token to join with, for nodes without agents."""
    return site.token_command("create", "--join", "hall[1-9]")


@pytest.fixture(scope="module")
def crowd(site: Site, join: str) -> list[Agent]:
    """All at once, as when a cluster is switched on."""
    names = [f"gpu{number:02}" for number in range(1, CROWD + 1)]
    return [site.agent(name, "--interval", "1", token=join) for name in names]


def joined(site: Site) -> dict[str, str]:
    """By node, the id of its token."""
    found = json.loads(site.token_command("list", "--json"))
    return {one["nodes"]: one["id"] for one in found if one["kind"] == "node" and one["state"] == "live"}


def all_up(site: Site, seconds: float) -> None:
    site.hub.until(lambda: site.hub.get("api/v1/summary")["nodes_up"] == CROWD, seconds)


def test_each_gets_its_own(site: Site, crowd: list[Agent], join: str):
    all_up(site, 60)
    tokens = {}
    for agent in crowd:
        file = agent.folder / "token"
        tokens[agent.node] = file.read_text("ascii").strip()
        assert file.stat().st_mode & 0o777 == 0o600
        assert agent.folder.stat().st_mode & 0o077 == 0
        assert agent.words.count(" joined http://") == 1
        assert "refuses" not in agent.words
    assert len({*tokens.values(), join}) == CROWD + 1
    known = joined(site)
    assert {node: token.split("_")[1] for node, token in tokens.items()} == known
    # Each is for its own node only.
    answer = site.post(tokens["gpu01"], snapshot("gpu02"))
    assert answer.status_code in (403, 409)
    for secret in tokens.values():
        assert secret.encode() not in (site.data / "gpulse.db").read_bytes()


def test_hub_is_restarted(site: Site, crowd: list[Agent]):
    """They come back by themselves and spread out, without joining again."""
    before = joined(site)
    site.stop_hub()
    for agent in crowd:
        agent.says("the hub restarts")
    site.start_hub()
    all_up(site, LONGEST_SECONDS)
    times = sorted(
        entry["time"]
        for agent in crowd
        for entry in site.log(agent.node)
        if entry["message"].startswith("its agent connected")
    )
    assert len(times) == CROWD
    assert times[-1] - times[0] > 0.5
    # The hub listens before it takes anybody: who came until then is taken at once.
    for first in (one for one in times if one >= times[0] + INSTANT_SECONDS):
        assert sum(first <= one < first + INSTANT_SECONDS for one in times) <= CROWD / 2
    assert joined(site) == before
    for agent in crowd:
        assert agent.process.poll() is None
        assert agent.words.count(" joined http://") == 1


def test_hub_is_killed_and_a_node_is_started_meanwhile(site: Site, crowd: list[Agent]):
    """Its token is in its folder: it needs no other, though the one to join with is revoked by now."""
    site.stop_hub(9)
    crowd[0].kill()
    again = site.agent(crowd[0].node, "--interval", "1")
    again.says("no connection to")
    site.start_hub()
    site.token_command("revoke", f"gpu[01-{CROWD}]")
    site.until_up(again.node, LONGEST_SECONDS)


def test_outside_of_the_set(site: Site):
    token = site.token_command("create", "--join", "rack[1-3]")
    agent = site.agent("rack4", token=token)
    words = agent.says("refuses this node")
    assert "is for rack[1-3], and 'rack4' is none of them (403 not_in_set)" in words
    assert not (agent.folder / "token").exists()
    assert site.state("rack4") == "404"
    agent.kill()


def test_expired(site: Site):
    token = site.token_command("create", "--join", "late1", "--expires", "1s")
    time.sleep(1.1)
    agent = site.agent("late1", token=token)
    assert "is at its end (401 token_expired)" in agent.says("refuses this node")
    answer = site.post(token, b'{"node": "late1"}', "/join")
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "token_expired")
    assert site.state("late1") == "404"
    agent.kill()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "bad_body"),
        (b"{}", 400, "bad_body"),
        (b'{"node": ""}', 400, "bad_body"),
        (b'{"node": 7}', 400, "bad_body"),
        (b'{"node": "other1"}', 403, "not_in_set"),
        (b'{"node": "hall[1-9]"}', 403, "not_in_set"),
        (b'{"node": "../hall1"}', 403, "not_in_set"),
    ],
)
def test_refused(site: Site, hall: str, body: bytes, status: int, code: str):
    answer = site.post(hall, body, "/join")
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_nobody_joins_twice(site: Site, hall: str):
    """Whoever finds the join token on a disk gets no node that has come already."""
    answer = site.post(hall, b'{"node": "hall1"}', "/join")
    assert answer.status_code == 201
    token = answer.json()["token"]
    assert site.post(token, snapshot("hall1")).status_code == 200
    until(lambda: site.post(hall, b'{"node": "hall1"}', "/join").status_code == 409)
    answer = site.post(token, b'{"node": "hall1"}', "/join")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "node_token")
    assert site.post(token, snapshot("hall1")).status_code == 200


def test_the_line_that_the_command_prints(site: Site):
    """What it tells people to type works, but for the address."""
    command = [GPULSE, "token", "create", "--join", "typed1", "--data", site.data]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_SECONDS, cwd=site.folder)
    (line,) = [line.strip() for line in ran.stderr.splitlines() if "--token-file" in line]
    assert line == "gpulse agent push --hub http://HUB:7070 --token-file FILE"
    file = site.folder / "typed-token"
    file.write_text(ran.stdout)
    site.agent("typed1", "--token-file", str(file))
    site.until_up("typed1")
