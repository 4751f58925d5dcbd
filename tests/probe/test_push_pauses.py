"""When agents tick, ping and try again: never together, and never too often."""

import pytest

from gpulse_probe import uplink
from tests.ports import free_port
from tests.probe.hub_stand_in import StandInHub
from tests.probe.pushing import RunningAgent, go_on, make_push, pauses

__all__ = ["pauses"]


@pytest.fixture
def hub():
    with StandInHub() as stand_in:
        yield stand_in


def test_pings_and_a_hub_that_stops_answering(hub, tmp_path, monkeypatch):
    monkeypatch.setattr("gpulse_probe.connection.PING_SECONDS", 0.2)
    monkeypatch.setattr("gpulse_probe.connection.PONG_SECONDS", 5.0)
    push, words = make_push(tmp_path, hub.url)
    push.tick(b'{"schema":1}')
    go_on(push, lambda: not hub.visits.empty())
    visit = hub.visit()
    go_on(push, lambda: visit.pings >= 3)
    assert len(words) == 1
    hub.answers_pings = False
    # Not before: a busy machine may take longer for a good answer.
    monkeypatch.setattr("gpulse_probe.connection.PONG_SECONDS", 0.3)
    go_on(push, lambda: len(words) > 1)
    assert "the hub has not answered for 0.3 s" in words[1]
    hub.answers_pings = True
    go_on(push, lambda: not hub.visits.empty())
    push.close()


def test_it_answers_the_hubs_pings(hub, tmp_path):
    push, _ = make_push(tmp_path, hub.url)
    go_on(push, lambda: not hub.visits.empty())
    visit = hub.visit()
    visit._protocol.send_ping(b"there?")
    visit._flush()
    go_on(push, lambda: visit.pongs == [b"there?"])
    push.close()


def test_many_agents_do_not_tick_together(hub, tmp_path):
    """Their phases are all over the interval."""
    agents = [RunningAgent(tmp_path / f"a{number}", hub.url, "--interval", "2") for number in range(6)]
    try:
        phases = []
        for _ in agents:
            visit = hub.visit()
            while "update" not in (line := visit.line()):
                pass
            phases.append(line["time"] % 2)
    finally:
        for agent in agents:
            agent.__exit__()
    assert max(phases) - min(phases) > 0.05


def test_first_try_after_a_loss_is_spread_as_the_hub_says(hub, tmp_path, monkeypatch, pauses):
    hub.hello["spread_seconds"] = 40.0
    push, _ = make_push(tmp_path, hub.url)
    go_on(push, lambda: not hub.visits.empty())
    chances = []
    monkeypatch.setattr(uplink, "fraction", lambda: chances.append(1) or 0.02)
    go_on(push, lambda: push._connection is not None)
    hub.visit().close(1012, "restart")
    go_on(push, lambda: push._connection is None)
    assert pauses == [0.8]
    assert chances == [1]
    push.close()


def test_tries_become_rarer(tmp_path, monkeypatch, pauses):
    monkeypatch.setattr(uplink, "fraction", lambda: 1.0)
    push, words = make_push(tmp_path, f"http://127.0.0.1:{free_port()}")
    for _ in range(8):
        push._uplink._begin_at = 0.0
        go_on(push, lambda: push._uplink._under_way is None and push._uplink._begin_at > 0)
    assert pauses == [2.5, 5, 10, 20, 40, 60, 60, 60]
    assert len(words) == 1, "said once"
