"""gpulse free: finds free GPUs, now or as soon as there are some."""

import socket
import sys
import time
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from gpulse.cli import figures, options
from gpulse.cli.client import Hub
from gpulse.cli.holding import Hold, usual
from gpulse.cli.listing import printed
from gpulse.cli.tables import UNKNOWN, Column, Span, Table
from gpulse.errors import GpulseError, HubSilent
from gpulse.fleet.sizes import parse_size
from gpulse.fleet.views import GpuView

if TYPE_CHECKING:
    from gpulse.fleet.finder import Answer

NOT_FOUND = 1
_POLL_SECONDS = 2.0
# How often what was found may be gone before it is held.
_MOST_TRIES = 20
_LOOK_AGAIN_SECONDS = 0.5
_COLUMNS = (Column("NODE"), Column("GPU", right=True), Column("MODEL"), Column("MEMORY GiB", right=True))


def free(
    words: options.Words = None,
    *,
    count: Annotated[int, typer.Option("--count", "-n", min=1, metavar="GPUS", help="How many.")] = 1,
    memory: Annotated[str | None, typer.Option(metavar="SIZE", help="With so much memory each: 40GB.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Of this model: H100.")] = None,
    same_node: Annotated[bool, typer.Option("--same-node", help="All on one node.")] = False,
    export: Annotated[
        bool,
        typer.Option("--export", help="Print only `export CUDA_VISIBLE_DEVICES=…`, for eval; implies --same-node."),
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until there are such GPUs, and hold them.")] = False,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Wait no longer than 30s, 15m, 2h or 1h30m.")
    ] = None,
    length: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="Free for so long: nobody else has them reserved within."),
    ] = None,
    hold: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Reserve them for so long, so that nobody snaps them away; with --wait 10m where not told.",
        ),
    ] = None,
    no_hold: Annotated[bool, typer.Option("--no-hold", help="With --wait: hold nothing.")] = False,
    query: options.Query = None,
    hub: options.HubUrl = options.HUB,
    fingerprint: options.Fingerprint = None,
    data: options.HubData = None,
    as_json: options.AsJson = False,
    width: options.Width = None,
) -> None:
    """Find free GPUs. Ends with 0 when there are such, with 1 and the reason when not."""
    if timeout is not None and not wait:
        raise GpulseError("--timeout says how long to wait; give --wait too")
    if memory is not None and parse_size(memory) is None:
        raise GpulseError(f"--memory {memory!r} is not an amount of memory; write it like 40GB")
    if hold is not None and no_hold:
        raise GpulseError("--hold and --no-hold cannot both be; leave out one of them")
    wanted = {"n": str(count), **options.filter_of(query, words)}
    wanted |= {name: value for name, value in (("memory", memory), ("model", model)) if value is not None}
    if same_node or export:
        wanted["same_node"] = "true"
    patience = None if timeout is None else figures.duration(timeout)
    asked = Hub(hub, fingerprint, data)
    holding = _hold(asked, hold, count, wait, offered=wait and not no_hold)
    if length is not None or holding is not None:
        wanted["for"] = _longer(length, None if holding is None else holding.length)
    search = _Search(asked, wanted, holding, here_first=export)
    body, answer = search.wait(_in_words(count, memory, model, wanted), patience) if wait else search.ask()
    if as_json:
        typer.echo(body if holding is None or holding.made is None else _with_hold(body, holding.made))
    elif answer.found:
        _tell(answer, export, width)
        if holding is not None:
            typer.echo(f"gpulse: {holding.told()}", err=True)
    else:
        typer.echo(answer.explanation, err=True)
    raise typer.Exit(0 if answer.found else NOT_FOUND)


def _hold(hub: Hub, length: str | None, count: int, wait: bool, offered: bool) -> Hold | None:
    """What keeps what will be found, where that is wished, or offered and possible."""
    if length is None:
        return usual(hub, count) if offered else None
    hold = Hold(hub, length)
    if wait:
        hold.check(count)
    return hold


def _longer(length: str | None, hold: str | None) -> str:
    """What is held must be free for as long, too."""
    from gpulse.reservations.dates import parse_span

    return max((one for one in (length, hold) if one is not None), key=parse_span)


class _Search:
    """Asks the hub for GPUs; with `here_first` this machine's are preferred."""

    def __init__(self, hub: Hub, wanted: dict[str, str], hold: Hold | None, here_first: bool) -> None:
        self._hub = hub
        self._wanted = wanted
        self._hold = hold
        self._here_first = here_first

    def ask(self) -> tuple[bytes, "Answer"]:
        """What there is now, held where that is wanted; what somebody snaps away meanwhile is looked for again."""
        body, answer = self._find()
        tries = 1
        while self._hold is not None and answer.found and not self._hold.take(answer.gpus):
            if tries == _MOST_TRIES:
                why = "others reserved what was found, again and again"
                # Who waits goes on, as where nothing was found.
                answer = msgspec.structs.replace(answer, found=False, gpus=[], export=None, explanation=why)
                return msgspec.json.encode(answer), answer
            tries += 1
            # The hub looks at reservations once a second.
            time.sleep(_LOOK_AGAIN_SECONDS)
            body, answer = self._find()
        return body, answer

    def _find(self) -> tuple[bytes, "Answer"]:
        if self._here_first:
            here = f"{self._wanted.get('q', '')} node:{_this_machine()}".strip()
            body, answer = self._asked(self._wanted | {"q": here})
            if answer.found:
                return body, answer
        return self._asked(self._wanted)

    def wait(self, what: str, patience: float | None) -> tuple[bytes, "Answer"]:
        """Asks until it is found or patience ends. A hub that goes away may come back; one never there is an error."""
        body, answer = self.ask()
        started, said = time.monotonic(), ""
        if not answer.found:
            typer.echo(f"waiting for {what} (Ctrl-C ends)", err=True)
        while not answer.found:
            left = None if patience is None else patience - (time.monotonic() - started)
            if left is not None and left <= 0:
                break
            time.sleep(_POLL_SECONDS if left is None else min(left, _POLL_SECONDS))
            try:
                body, answer = self.ask()
                news = answer.explanation
            except HubSilent as error:
                news = str(error)
            if news != said and not answer.found:
                typer.echo(f"{time.strftime('%H:%M:%S')}  {news}", err=True)
                said = news
        return body, answer

    def _asked(self, query: dict[str, str]) -> tuple[bytes, "Answer"]:
        # It needs ClusterShell, which the tables can do without.
        from gpulse.fleet.finder import Answer

        body = self._hub.get("/free", query)
        return body, self._hub.decode(body, Answer)


def _with_hold(body: bytes, made: bytes) -> bytes:
    return msgspec.json.encode({**msgspec.json.decode(body), "hold": msgspec.Raw(made)})


def _tell(answer: "Answer", export: bool, width: int | None) -> None:
    if not export:
        typer.echo("\n".join(printed(table(answer.gpus, answer.export), width)))
        return
    if answer.export is None:
        raise GpulseError(f"the GPUs cannot be named in CUDA_VISIBLE_DEVICES: {answer.explanation}")
    typer.echo(f"export {answer.export}")
    if answer.node not in _this_machine().split(","):
        typer.echo(f"gpulse: these GPUs are on {answer.node}; set it there", err=True)
    sys.stdout.flush()


def table(found: list[GpuView], export: str | None = None) -> Table:
    rows = [
        (Span(gpu.node, "bold"), figures.gpu_index(gpu), figures.model(gpu), figures.gibibytes(gpu.memory_total_bytes))
        for gpu in found
    ]
    known = [gpu.memory_total_bytes for gpu in found if gpu.memory_total_bytes is not None]
    total = figures.memory(sum(known)) if len(known) == len(found) else f"memory {UNKNOWN}"
    sums = [f"{figures.amount(len(found), 'GPU', 'GPUs')} · {total}"]
    if export is not None:
        sums.append(f"on {found[0].node}: {export}")
    return Table(_COLUMNS, rows, sums)


def _in_words(count: int, memory: str | None, model: str | None, wanted: dict[str, str]) -> str:
    words = [figures.amount(count, "free GPU", "free GPUs")]
    if model is not None:
        words.append(f"of model {model}")
    if memory is not None:
        words.append(f"with {memory}")
    if count > 1 and "same_node" in wanted:
        words.append("on one node")
    if "q" in wanted:
        words.append(f"matching {wanted['q']!r}")
    return " ".join(words)


def _this_machine() -> str:
    """The names this machine may have in a fleet: its own, and that without its domain."""
    name = socket.gethostname()
    return ",".join(dict.fromkeys((name, name.partition(".")[0])))
