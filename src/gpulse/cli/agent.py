"""gpulse agent install|status|restart|stop|remove: agents on nodes, over SSH and without root."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from gpulse.cli import probe, terminal
from gpulse.cli.accounts import by_local_person
from gpulse.cli.doctor import ssh_targets
from gpulse.cli.options import AsJson, HubCommand
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.config import database_url
from gpulse.errors import AgentError

if TYPE_CHECKING:
    from gpulse.agents.care import Agents, Secrets
    from gpulse.agents.node_service import Answer
    from gpulse.config import Config
    from gpulse.transport.ssh import SshTarget

# What one node can fill of a terminal.
LONGEST_LINE, MOST_NOTES = 500, 10

app = typer.Typer(help="The probe as a service on nodes.", no_args_is_help=True, rich_markup_mode=None)

Hosts = Annotated[
    list[str] | None, typer.Argument(metavar="HOSTS", help="Nodes, reached over SSH (default: those of the settings).")
]
Python = Annotated[
    str | None, typer.Option("--python", metavar="PROGRAM", help="The nodes' Python, 3.6 or later (default python3).")
]
Doing = Callable[["Agents", list["SshTarget"]], AsyncIterator["Answer"]]


class Nodes(msgspec.Struct):
    """Which nodes a command speaks of, and how it tells of them."""

    hosts: list[str] | None
    config: ConfigPath
    python: str | None
    as_json: bool


@app.command(cls=HubCommand)
def install(
    hosts: Hosts = None,
    hub: Annotated[
        str, typer.Option("--hub", metavar="URL", help="The hub's address as nodes reach it; needed to push.")
    ] = "",
    ca: Annotated[
        Path | None,
        typer.Option("--ca", metavar="FILE", help="push: certificates to trust for https; nodes get a copy."),
    ] = None,
    fingerprint: Annotated[
        str,
        typer.Option(
            "--fingerprint",
            metavar="TEXT",
            help="push: the hub's key at https; found by itself where this hub's certificate is its own.",
        ),
    ] = "",
    way: Annotated[
        Literal["push", "serve", "drop"],
        typer.Option("--way", help="Send to the hub, answer the hub, or write into a folder."),
    ] = "push",
    listen: Annotated[str, typer.Option("--listen", metavar="ADDRESS", help="serve: the address to listen on.")] = "",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, help="serve: the port to listen on.")] = 7080,
    drop: Annotated[
        str, typer.Option("--drop", metavar="DIR", help="drop: the folder, by its full path on the nodes.")
    ] = "",
    interval: Annotated[
        float | None,
        typer.Option("--interval", min=0.1, max=3600, metavar="SECONDS", help="Time between snapshots."),
    ] = None,
    config: ConfigPath = None,
    data: Data = None,
    python: Python = None,
    as_json: AsJson = False,
) -> None:
    """Install agents, or bring them up to date."""
    from gpulse.agents.node_secrets import NoSecrets, PullSecrets, push_secrets
    from gpulse.agents.order import Order

    settings = read_config(config)[0]
    folder = data or settings.hub.data
    if way == "push" and hub.startswith("https:") and not (ca or fingerprint):
        fingerprint = _own_fingerprint(settings, folder)
    order = Order(
        way=way,
        hub=hub,
        certificates=_text(ca) if ca else "",
        fingerprint=fingerprint,
        listen=listen,
        port=port,
        drop=drop,
        interval_seconds=interval,
    )
    order.check()
    if order.in_clear():
        _say(f"tokens travel to {hub} unencrypted, for all on the network between to read; https would hide them")
    pull = PullSecrets(folder)
    with contextlib.ExitStack() as stack:
        secrets: Secrets = pull if way == "serve" else NoSecrets()
        if way == "push":
            secrets = stack.enter_context(push_secrets(folder, database_url(settings.store), by_local_person()))
        nodes = Nodes(hosts, config, python, as_json)
        done = _run("install", nodes, lambda agents, targets: agents.install(targets, order, secrets))
    working = [answer.node for answer in done if answer.outcome != "failed"]
    if working and way != "push":
        table = order.table(working, pull.token_file).splitlines()
        terminal.warn("so that the hub shows them, add to gpulse.toml:", "", *table, "")
    _end(done, "failed")


@app.command(cls=HubCommand)
def status(hosts: Hosts = None, config: ConfigPath = None, python: Python = None, as_json: AsJson = False) -> None:
    """Tell whether agents run, since when, and what they said last."""
    nodes = Nodes(hosts, config, python, as_json)
    done = _run("status", nodes, lambda agents, targets: agents.ask(targets, "status"))
    _end(done, "failed", "stopped", "absent")


@app.command(cls=HubCommand)
def restart(hosts: Hosts = None, config: ConfigPath = None, python: Python = None, as_json: AsJson = False) -> None:
    """Start agents, or start them anew."""
    nodes = Nodes(hosts, config, python, as_json)
    done = _run("restart", nodes, lambda agents, targets: agents.ask(targets, "restart"))
    _end(done, "failed", "absent")


@app.command(cls=HubCommand)
def stop(hosts: Hosts = None, config: ConfigPath = None, python: Python = None, as_json: AsJson = False) -> None:
    """Stop agents, until they are restarted or their nodes are."""
    nodes = Nodes(hosts, config, python, as_json)
    done = _run("stop", nodes, lambda agents, targets: agents.ask(targets, "stop"))
    _end(done, "failed")


@app.command(cls=HubCommand)
def remove(
    hosts: Hosts = None, config: ConfigPath = None, data: Data = None, python: Python = None, as_json: AsJson = False
) -> None:
    """Take agents and their files away; revoke their tokens."""
    from gpulse.agents.node_secrets import push_secrets

    nodes = Nodes(hosts, config, python, as_json)
    settings = read_config(config)[0]
    url = database_url(settings.store)
    with push_secrets(data or settings.hub.data, url, by_local_person()) as secrets:
        done = _run("remove", nodes, lambda agents, targets: agents.remove(targets, secrets))
    _end(done, "failed")


def _on_this_machine(word: str, text: str) -> None:
    """Listed here for --help; the options of these commands are the agent's own."""

    @app.command(word, help=text, add_help_option=False, context_settings={"ignore_unknown_options": True})
    def run(arguments: Annotated[list[str] | None, typer.Argument(hidden=True)] = None) -> None:
        raise typer.Exit(probe.run_agent([word, *(arguments or [])]))


_on_this_machine("push", "Be the agent of this machine: send to a hub.")
_on_this_machine("serve", "Be the agent of this machine: answer a hub.")
_on_this_machine("drop", "Be the agent of this machine: write into a folder.")


def _run(command: str, nodes: Nodes, doing: Doing) -> list["Answer"]:
    """Do it with all nodes, and tell of each as it is done."""
    from gpulse.agents.care import Agents
    from gpulse.transport.bundle import make_agent
    from gpulse.transport.ssh import Ssh

    config, path = read_config(nodes.config)
    settings, targets = ssh_targets(nodes.hosts or [], config, path, f"agent {command}")
    if nodes.python:
        targets = [msgspec.structs.replace(target, python=nodes.python) for target in targets]

    async def all_of_them() -> list["Answer"]:
        ssh = Ssh(settings)
        done = []
        try:
            async for answer in doing(Agents(ssh, make_agent()), targets):
                done.append(answer)
                if not nodes.as_json:
                    for line in lines(answer):
                        terminal.tell(line[:LONGEST_LINE])
        finally:
            await ssh.close()
        return done

    done = asyncio.run(all_of_them())
    if nodes.as_json:
        terminal.tell_record(done)
    else:
        counted = Counter(answer.outcome for answer in done)
        terminal.tell(f"{len(done)} nodes: " + ", ".join(f"{count} {outcome}" for outcome, count in counted.items()))
    return done


def lines(answer: "Answer") -> Iterator[str]:
    """What people read of a node."""
    if answer.outcome == "failed":
        yield f"✗ {answer.node}  {answer.error}"
        if answer.fix:
            yield f"      → {answer.fix}"
        return
    sign = "–" if answer.outcome in ("absent", "stopped") else "✓"
    told = [f"{sign} {answer.node}  {answer.outcome}"]
    if answer.version:
        told[0] += f" {answer.version}"
    if answer.by:
        told.append("by systemd" if answer.by == "systemd" else "detached")
    if answer.pid and answer.since:
        told.append(f"pid {answer.pid} since {time.strftime('%Y-%m-%d %H:%M', time.localtime(answer.since))}")
    if answer.at_boot is False:
        told.append("not started at boot")
    yield ", ".join(told)
    for note in answer.notes[:MOST_NOTES]:
        yield f"      ! {note}"
    if answer.log:
        yield f"      {answer.log[-1]}"


def _end(done: list["Answer"], *failures: str) -> None:
    if any(answer.outcome in failures for answer in done):
        raise typer.Exit(1)


def _own_fingerprint(settings: "Config", folder: Path) -> str:
    """That of the hub with these settings, "" where its certificate comes from elsewhere."""
    from gpulse.tls.files import own_files
    from gpulse.tls.own import own_fingerprint

    if settings.tls.self_signed:
        return own_fingerprint(folder)
    if settings.tls.certificate is None and own_files(folder).certificate.exists():
        _say(
            f"{folder} has a certificate of the hub's own, but tls.self_signed is not set in these settings; where"
            " agents do not trust the hub, name its settings with --config, or its key with --fingerprint"
        )
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise AgentError(f"--ca {path} cannot be read: {problem}") from problem


def _say(sentence: str) -> None:
    terminal.warn(sentence)
