"""A node's checks: those of gpulse doctor where the hub reads it over SSH, else what can be told from here."""

from collections.abc import Mapping

import msgspec

from gpulse.api.bodies import Incoming
from gpulse.api.endpoint import Endpoint
from gpulse.api.hub import Hub
from gpulse.api.queries import OfPeople
from gpulse.api.selection import unknown_node
from gpulse.fleet.seeing import ADMINS_ONLY
from gpulse.fleet.sight import Sight
from gpulse.fleet.views import NodeView
from gpulse.transport.checks import CLOCK, GPU_COLLECTORS, LARGEST_CLOCK_DIFFERENCE, NTP, NVML, TITLES, Check
from gpulse.transport.explain import PROBE

ARRIVING = "arriving"
_TITLES = {**TITLES, ARRIVING: "snapshots arrive"}


class CheckView(Check, omit_defaults=True, kw_only=True):
    """A check with its name for people."""

    title: str


class NodeChecks(msgspec.Struct, kw_only=True):
    """Why a node is not green, in the order in which its checks must hold."""

    node: str
    # Whether it was logged in to for them; else they are what the hub knows of its last snapshot.
    tried: bool
    checks: list[CheckView]
    passed: bool


async def get_checks(hub: Hub, query: object, path: Mapping[str, str], incoming: Incoming) -> NodeChecks:
    del query
    name = path["node"]
    view = hub.fleet.node(name, True, incoming.sight)
    if view is None:
        raise await unknown_node(hub.fleet, name)
    found = await hub.examine(name)
    checks = list(_known(view)) if found is None else found.checks
    views = [_seen(check, incoming.sight) for check in checks]
    passed = all(check.outcome != "failed" for check in checks)
    return NodeChecks(node=name, tried=found is not None, checks=views, passed=passed)


def _seen(check: Check, sight: Sight) -> CheckView:
    view = CheckView(**msgspec.structs.asdict(check), title=_TITLES[check.name])
    if sight.level == "anonymous":
        # Which account logs in, and where it has no home, are words too.
        view.detail, view.fix = ADMINS_ONLY if check.outcome == "failed" else "", ""
    return view


def _known(view: NodeView) -> list[Check]:
    """What the hub has seen of a node that it does not go to by itself."""
    what, _, fix = view.reason.partition("; ")
    checks = [Check(ARRIVING, "passed" if view.state == "up" else "failed", what or _arriving(view), fix)]
    if view.age_seconds is None:
        return checks
    trouble = [report.message or "" for report in view.reports or () if report.collector in GPU_COLLECTORS]
    cards = sum(gpu.parent_uuid is None for gpu in view.gpus)
    if trouble:
        checks.append(Check(NVML, "failed", trouble[0], "run nvidia-smi there"))
    else:
        checks.append(Check(NVML, "passed", f"{cards} GPUs" if cards else "no GPU found"))
    difference = view.clock_difference_seconds
    if difference is not None:
        apart = abs(difference) > LARGEST_CLOCK_DIFFERENCE
        detail = f"{difference:+.1f} s from the hub's"
        checks.append(Check(CLOCK, "failed" if apart else "passed", detail, NTP if apart else ""))
    checks.append(Check(PROBE, "passed", f"version {view.probe_version}" if view.probe_version else ""))
    return checks


def _arriving(view: NodeView) -> str:
    return f"every {view.interval_seconds:g} s" if view.state == "up" else "none has come yet"


ENDPOINTS = (
    Endpoint(
        path="/api/v1/nodes/{node}/checks",
        name="getNodeChecks",
        summary="Why a node is not green: what gpulse doctor finds. A node over SSH is logged in to for it.",
        answer=NodeChecks,
        handle=get_checks,
        may="read",
        query=OfPeople,
        of_people=True,
        path_parameters={"node": "The node's name."},
        # It may take half a minute, and is kept by whoever makes it.
        cached=False,
        errors=(400, 404, 406),
    ),
)
