"""The files of an exported site: the built page, the data of one moment, and what the site itself adds."""

import html
import re
from pathlib import Path
from typing import NamedTuple

import msgspec

from gpulse.errors import ExportError

# Made by `make web`: the page around one classic script, as browsers refuse modules from file://.
BUILT = Path(__file__).parents[1] / "api" / "static" / "export"
_PAGE = "index.html"
_PNG = b"\x89PNG\r\n\x1a\n"
_ADDRESS = re.compile(r'\b(href|src)="(?:\./)?([^":#/?][^":#?]*)"')


class Moment(NamedTuple):
    """What a hub told at `made`, in seconds since 1970; the parts are JSON as they came."""

    title: str
    made: float
    summary: msgspec.Raw
    nodes: list[msgspec.Raw]
    people: list[msgspec.Raw]
    # How many there are beside them, whose names are not told.
    others: int
    # The last ten minutes of all GPUs; the newest entries of each node's log.
    history: dict[str, object] | None
    logs: dict[str, list[msgspec.Raw]]
    logo: bytes | None = None
    custom_css: bytes | None = None


class Site(NamedTuple):
    """A page and the files it loads, by name; they stand in a folder beside it."""

    page: str
    files: dict[str, bytes]


def build(moment: Moment, folder: str) -> Site:
    """The site whose files will stand in `folder`; ExportError where the page was not built."""
    files = {path.relative_to(BUILT).as_posix(): path.read_bytes() for path in BUILT.rglob("*") if path.is_file()}
    if _PAGE not in files:
        raise ExportError("the page is not built; run `make web`, or install gpulse from its wheel")
    page = files.pop(_PAGE).decode()
    logo = None
    if moment.logo is not None:
        # Browsers tell what is in a local file by its name.
        logo = "logo.png" if moment.logo.startswith(_PNG) else "logo.svg"
        files[logo] = moment.logo
    if moment.custom_css is not None:
        files["custom.css"] = moment.custom_css
    files["data.js"] = script(moment, f"{folder}/{logo}" if logo else None)
    return Site(_around(page, moment, folder), files)


def script(moment: Moment, logo: str | None) -> bytes:
    """The data as a script: a page from file:// may load nothing else."""
    data = {
        "title": moment.title,
        "made": round(moment.made, 3),
        "logo": logo,
        # index.html links it.
        "custom_css": False,
        "summary": moment.summary,
        "people": moment.people,
        "others": moment.others,
        "nodes": moment.nodes,
        "history": moment.history,
        "logs": moment.logs,
    }
    text = msgspec.json.encode(data)
    # In JSON these stand in strings alone. "<" would let a name end the script, the others are ends of lines for some.
    for character, escaped in (("<", b"\\u003c"), ("\u2028", b"\\u2028"), ("\u2029", b"\\u2029")):
        text = text.replace(character.encode(), escaped)
    return b"window.gpulseExport = " + text + b";\n"


def _around(page: str, moment: Moment, folder: str) -> str:
    page = _ADDRESS.sub(rf'\1="{folder}/\2"', page)
    # By a function, as a title may have a backslash in it.
    page = re.sub(r"<title>.*?</title>", lambda _: f"<title>{html.escape(moment.title)}</title>", page, flags=re.DOTALL)
    if moment.custom_css is not None:
        # At the very end, so that it wins.
        page = page.replace("</body>", f'<link rel="stylesheet" href="{folder}/custom.css">\n</body>', 1)
    return page
