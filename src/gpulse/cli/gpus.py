"""gpulse gpus: the GPUs of the fleet, a line each."""

from gpulse.cli import figures, options
from gpulse.cli.client import Hub
from gpulse.cli.listing import show
from gpulse.cli.tables import UNKNOWN, Cell, Column, Span, Table
from gpulse.fleet.views import GpuView

_COLUMNS = (
    Column("NODE"),
    Column("GPU", right=True),
    Column("MODEL", spare=1),
    Column("STATE"),
    Column("UTIL", right=True),
    Column("MEMORY GiB", right=True, spare=2),
    Column("°C", right=True, spare=4),
    Column("POWER W", right=True, spare=5),
    Column("FLAGS", spare=3),
    Column("PEOPLE"),
)
_FLAGS = 8


def gpus(
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
    """Show the GPUs: state, load, memory, temperature, power, and who is on them."""
    wanted = options.filter_of(query, words)
    empty = "no GPU matches the filter" if wanted else "the hub knows of no GPU yet"

    def built(found: list[GpuView]) -> Table:
        return table(found, empty)

    show(Hub(hub, fingerprint, data), "/gpus", wanted, GpuView, built, as_json=as_json, width=width, watch=watch)


def table(found: list[GpuView], empty: str = "") -> Table:
    rows = [_row(gpu) for gpu in found]
    columns = list(_COLUMNS)
    if not any(gpu.flags for gpu in found):
        del columns[_FLAGS]
        for row in rows:
            del row[_FLAGS]
    sums = [f"{figures.gpu_states(found)} · {figures.gpu_sums(found)}"] if found else []
    return Table(columns, rows, sums, empty)


def _row(gpu: GpuView) -> list[Cell]:
    celsius = gpu.temperature_celsius
    return [
        Span(gpu.node, "bold"),
        figures.gpu_index(gpu),
        figures.model(gpu),
        figures.state(gpu.state or "split"),
        figures.percent(gpu.utilization_ratio),
        figures.used_of(gpu.memory_used_bytes, gpu.memory_total_bytes),
        UNKNOWN if celsius is None else str(celsius),
        figures.watts(gpu.power_watts, gpu.power_limit_watts),
        Span(", ".join(gpu.flags), "yellow"),
        Span(gpu.fault, "red") if gpu.fault else figures.people([gpu]),
    ]
