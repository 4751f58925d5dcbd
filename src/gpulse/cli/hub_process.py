"""Runs the hub in this process: says where it is, then serves until it is told to end."""

import os
import socket
import sys

from gpulse.api.server import listen, reached_by_others, this_is_https, url_of
from gpulse.app import Hub, Operator
from gpulse.clean_text import log_to_stderr
from gpulse.cli import terminal
from gpulse.cli.accounts import login_name
from gpulse.config import Config
from gpulse.discovery import Source
from gpulse.simulate.transport import Scene
from gpulse.tls.serving import serving_tls

IN_THE_CLEAR = (
    "others on the network can read along what passes between people and this hub; set tls.certificate and tls.key, or"
    " tls.self_signed = true, or put a proxy in front that speaks https"
)
# Where a browser on this machine finds a hub that listens everywhere.
_HERE = {"//0.0.0.0:": "//127.0.0.1:", "//[::]:": "//[::1]:"}


def run_hub(config: Config, sources: list[Source], scene: Scene | None = None, *, link: bool = True) -> None:
    """With `link` it prints one that signs the person who runs it in."""
    log_to_stderr()
    tls = serving_tls(config, this_is_https())
    listeners = listen(config.hub.host, config.hub.port)
    listener = listeners[0]
    url = url_of(listener, config.web.base_path, secure=tls is not None)

    def show_link(role: str, code: str) -> None:
        # After the #, so that the code is in no request line and in no log of a proxy.
        terminal.tell(f"Sign in as {role}: {on_this_machine(url)}#/sign-in/{code}")
        if on_this_machine(url) != url:
            terminal.tell(f"The same from elsewhere: {by_name(url)}#/sign-in/{code}")

    hub = Hub(config, say, Operator(login_name(), show_link if link else None), tls)
    # The first line, for people and for scripts that wait for it.
    terminal.tell(url)
    if tls is None and reached_by_others(listener):
        say(IN_THE_CLEAR)
    if tls is not None and tls.pair.self_signed:
        say(f"the certificate is signed by itself; who comes from elsewhere needs --fingerprint {tls.pair.fingerprint}")
    # uvloop's loop costs half of asyncio's for thousands of connections.
    import uvloop

    uvloop.run(hub.run(listeners, sources, scene))
    # All is ended in order; a thread that still waits for a name server must not keep the person waiting.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def on_this_machine(url: str) -> str:
    return next((url.replace(every, here, 1) for every, here in _HERE.items() if every in url), url)


def by_name(url: str) -> str:
    """Where others find a hub that listens everywhere, if they know this machine by its own name."""
    return next((url.replace(every, f"//{socket.gethostname()}:", 1) for every in _HERE if every in url), url)


def say(sentence: str) -> None:
    """Tell whoever started the hub; the sentence may quote a node, a name server or a proxy."""
    terminal.warn(sentence)
