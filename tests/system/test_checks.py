"""Doctor's checks by a running hub: of real OpenSSH servers, and of nodes that it does not go to."""

import asyncio

import pytest

from gpulse.transport import examining
from gpulse.transport.examining import Examining
from gpulse.transport.ssh import Ssh
from tests.api.fleets import card, snapshot
from tests.system.agents import CALM, Site
from tests.system.conftest import target
from tests.system.test_up import start, states

NAMES = ["name", "port", "host key", "login", "python", "NVML", "clock", "probe"]


def test_of_a_hub_over_ssh(serve, client):
    good, unknown = serve(gpus=2), serve(known=False)
    with start(client, good, unknown) as hub:
        hub.until(lambda: states(hub) == {"gpu1": "up", "gpu2": "down"})
        told = hub.get("api/v1/nodes/gpu1/checks")
        assert (told["passed"], told["tried"]) == (True, True)
        assert [(check["name"], check["outcome"]) for check in told["checks"]] == [(name, "passed") for name in NAMES]
        assert told["checks"][5]["detail"] == "2 GPUs, driver 550.54.15"
        told = hub.get("api/v1/nodes/gpu2/checks")
        assert (told["passed"], told["tried"]) == (False, True)
        last = told["checks"][-1]
        assert (last["name"], last["title"], last["outcome"]) == ("host key", "host key", "failed")
        assert "gpulse doctor --trust" in last["fix"]


def test_many_who_ask_at_once_cost_one_login(serve, settings, monkeypatch):
    server = serve(gpus=1)
    logins = []
    real = examining.examine

    async def counted(ssh, one):
        logins.append(one.name)
        return await real(ssh, one)

    monkeypatch.setattr(examining, "examine", counted)

    async def ask() -> None:
        ssh = Ssh(settings)
        known = {"n0": target(server)}
        one = Examining(ssh, known.get)
        try:
            answers = await asyncio.gather(*(one.examine("n0") for _ in range(20)), one.examine("elsewhere"))
            assert answers[-1] is None
            assert {answer.passed for answer in answers[:-1]} == {True}
            await one.examine("n0")
            assert logins == ["n0"]
            # What was found of it in another place says nothing.
            known["n0"] = target(server, python="python3 ")
            await one.examine("n0")
            assert logins == ["n0", "n0"]
            monkeypatch.setattr(examining, "KEPT_SECONDS", 0.0)
            await one.examine("n0")
            assert logins == ["n0"] * 3
        finally:
            await one.close()
            await ssh.close()

    asyncio.run(ask())


@pytest.fixture
def site(tmp_path):
    with Site(tmp_path) as found:
        yield found


def test_of_a_node_that_pushes(site):
    """Nobody goes there: what the hub knows is told."""
    token = site.token("gpu1")
    site.hub.until(lambda: site.hub.get("api/v1/nodes")["total"] == 1)
    told = site.hub.get("api/v1/nodes/gpu1/checks")
    assert (told["tried"], told["passed"]) == (False, False)
    assert [check["title"] for check in told["checks"]] == ["snapshots arrive"]
    trouble = {"collector": "nvidia_nvml", "level": "error", "message": "NVML: Driver/library version mismatch"}
    answer = site.post(token, snapshot("gpu1", [card("GPU-1", 0)], reports=[trouble], probe=CALM))
    assert answer.status_code == 200, answer.text
    site.until_up("gpu1")
    told = site.hub.get("api/v1/nodes/gpu1/checks")
    found = {check["name"]: check["outcome"] for check in told["checks"]}
    assert found == {"arriving": "passed", "NVML": "failed", "clock": "failed", "probe": "passed"}
    assert told["checks"][1]["detail"] == "NVML: Driver/library version mismatch"
    assert "NTP" in told["checks"][2]["fix"]
