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
    Column("AGE", right=True, spare=6),
    Column("FLAGS", spare=3),
    Column("PEOPLE"),
)
_AGE, _FLAGS = 8, 9
# The hub reads most values every second; of older ones people should know.
_OLD_SECONDS = 3.0


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
    spared = [] if any(gpu.flags for gpu in found) else [_FLAGS]
    if not any((gpu.age_seconds or 0.0) >= _OLD_SECONDS for gpu in found):
        spared.append(_AGE)
    for at in spared:
        del columns[at]
        for row in rows:
            del row[at]
    sums = [f"{figures.gpu_states(found)} · {figures.gpu_sums(found)}"] if found else []
    return Table(columns, rows, sums, empty)


def _row(gpu: GpuView) -> list[Cell]:
    celsius = gpu.temperature_celsius
    return [
        Span(gpu.node, "bold"),
        figures.gpu_index(gpu),
        figures.model(gpu),
        _state(gpu),
        figures.percent(gpu.utilization_ratio),
        figures.used_of(gpu.memory_used_bytes, gpu.memory_total_bytes),
        UNKNOWN if celsius is None else str(celsius),
        figures.watts(gpu.power_watts, gpu.power_limit_watts),
        figures.age(gpu.age_seconds),
        Span(", ".join(gpu.flags), "yellow"),
        _words(gpu),
    ]


def _state(gpu: GpuView) -> Span:
    # What is not counted is a card that is split, or one that another node of the same machine has.
    return figures.state(gpu.state or ("split" if gpu.mig_enabled else "double"))


def _words(gpu: GpuView) -> Span | str:
    if gpu.fault:
        return Span(gpu.fault, "red")
    if gpu.state == "unknown":
        why = gpu.failed_reason or "too little is known to say whether it is used"
        return Span(f"{figures.people([gpu])}: {why}" if gpu.people else why, "yellow")
    return figures.people([gpu])
