"""Names of nodes, wherever they come from: any text has its place in their order."""

from gpulse.auth.node_names import names_of
from gpulse.errors import HostsError, TokenError
from gpulse.fleet.names import natural, short_model

SEEDS = [text.encode() for text in ("gpu2\ngpu10", "²", "gpu²\n²2", "٣\n3", "9" * 5000, "gpu[01-16]\nfe80::1")]
WORDS = ["\\xc2\\xb2", "\\xd9\\xa3", "\\xe2\\x91\\xa0", "\\x0a", "0009", "[1-3]"]


def fuzz(data: bytes) -> None:
    typed = data.decode("utf-8", "surrogateescape").split("\n")
    names = list(typed)
    for text in typed:
        short_model(text)
        try:
            names += names_of(text)[:20]
        except (HostsError, TokenError) as refused:
            assert str(refused)
    names.sort(key=natural)
