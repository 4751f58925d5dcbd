"""gpulse nodes: the nodes of the fleet, a line each."""

from collections import Counter
from statistics import fmean

from gpulse.cli import figures, options
from gpulse.cli.client import Hub
from gpulse.cli.listing import show
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.fleet.views import NodeView

_COLUMNS = (
    Column("NODE"),
    Column("STATE"),
    Column("GROUP", spare=6),
    Column("GPUS", spare=1),
    Column("FREE", right=True),
    Column("MODEL", spare=2),
    Column("UTIL", right=True, spare=3),
    Column("MEMORY GiB", right=True, spare=4),
    Column("POWER W", right=True, spare=7),
    Column("CPU", right=True, spare=8),
    Column("AGE", right=True, spare=5),
    Column("PEOPLE"),
)
_GROUP = 2


def nodes(
    words: options.Words = None,
    *,
    query: options.Query = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
    width: options.Width = None,
    watch: options.Watch = None,
) -> None:
    """Show the nodes: state, GPUs, how many are free, and who is on them."""
    wanted = options.filter_of(query, words)
    empty = "no node matches the filter" if wanted else "the hub has no nodes yet; add some with `gpulse up HOSTS`"

    def built(found: list[NodeView]) -> Table:
        return table(found, empty)

    show(Hub(hub, fingerprint, data), "/nodes", wanted, NodeView, built, as_json=as_json, width=width, watch=watch)


def table(found: list[NodeView], empty: str = "") -> Table:
    rows = [_row(node) for node in found]
    columns = list(_COLUMNS)
    if not any(node.group for node in found):
        del columns[_GROUP]
        for row in rows:
            del row[_GROUP]
    return Table(columns, rows, _sums(found) if found else (), empty)


def _row(node: NodeView) -> list[Cell]:
    counted = [gpu for gpu in node.gpus if gpu.counted]
    loads = [gpu.utilization_ratio for gpu in counted if gpu.utilization_ratio is not None]
    powers = [gpu.power_watts for gpu in node.gpus if gpu.power_watts is not None]
    totals = [gpu.memory_total_bytes for gpu in counted if gpu.memory_total_bytes is not None]
    used = [gpu.memory_used_bytes for gpu in counted if gpu.memory_used_bytes is not None]
    # A node's instances come in many sizes; `gpulse gpus` tells them.
    models = Counter("MIG" if gpu.parent_uuid else figures.model(gpu) for gpu in counted)
    return [
        Span(node.display_name, "bold"),
        figures.state(node.state),
        node.group or "",
        figures.strip(node.gpus) or UNKNOWN,
        _free(sum(gpu.state == "free" for gpu in counted), len(counted)),
        ", ".join(f"{count}× {name}" for name, count in models.most_common()) or UNKNOWN,
        figures.percent(fmean(loads) if loads else None),
        figures.used_of(
            sum(used) if used else None, sum(totals) if totals else None, bool(used) and len(used) < len(counted)
        ),
        figures.watts(sum(powers) if powers else None, None),
        figures.percent(node.rates.cpu_ratio if node.rates else None),
        figures.age(node.age_seconds if node.devices_age_seconds is None else node.devices_age_seconds),
        _words(node),
    ]


def _words(node: NodeView) -> Span | str:
    if node.reason:
        return Span(node.reason, "red")
    if node.same_machine_as is not None:
        return Span(f"same machine as {node.same_machine_as}, not counted", "yellow")
    return figures.people(node.gpus)


def _free(free: int, total: int) -> Span:
    if not total:
        return Span(UNKNOWN)
    return Span(f"{free}/{total}", "green" if free else "dim")


def _sums(found: list[NodeView]) -> list[str]:
    states = Counter(node.state for node in found)
    told = ", ".join(f"{states[word]} {word}" for word in ("up", "new", "stale", "down") if states[word])
    gpus = [gpu for node in found for gpu in node.gpus]
    return [
        f"{figures.amount(len(found), 'node', 'nodes')}: {told} · {figures.gpu_states(gpus)} · {figures.gpu_sums(gpus)}"
    ]
