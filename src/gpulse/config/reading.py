"""Read gpulse.toml: every mistake at once, each with its file, line, key and what is allowed."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from gpulse.config import lines
from gpulse.config.access import check_access
from gpulse.config.checks import build
from gpulse.config.files import CheckOwner, read_bytes, reason
from gpulse.config.node_tables import check_nodes
from gpulse.config.reservations import check_reservations
from gpulse.config.sections import Config
from gpulse.config.store import check_store
from gpulse.config.tls import check_tls
from gpulse.errors import ConfigError

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def load(path: Path, check_owner: CheckOwner | None = None) -> Config:
    """Return the settings of a file; raise ConfigError with all that is wrong in it.

    `check_owner` gets the owner of the very file that is read, as in `read_bytes`.
    """
    tables, places = _parsed(path, check_owner)
    problems: list[tuple[int, str]] = []

    def tell(where: lines.Path, what: str) -> None:
        line = next((places[where[:end]] for end in range(len(where), 0, -1) if where[:end] in places), None)
        head = f"{path}:{line}" if line else str(path)
        problems.append((line or 0, f"{head}: {_dotted(where)}: {what}"))

    config: Config = build(tables, Config, (), path.absolute().parent, tell)
    check_nodes(tables, places, tell)
    check_store(config.store, tell)
    check_tls(config.tls, tell)
    check_access(config.access, tell)
    check_reservations(config.reservations, tell)
    if problems:
        # By line, as a person goes through the file.
        raise ConfigError([text for _, text in sorted(problems, key=lambda problem: problem[0])])
    return config


def _parsed(path: Path, check_owner: CheckOwner | None) -> tuple[dict[str, Any], dict[lines.Path, int]]:
    try:
        # Editors on Windows put a mark before the first letter; tomllib takes it for one.
        text = read_bytes(path, check_owner).decode("utf-8-sig").replace("\r\n", "\n")
        return tomllib.loads(text), lines.find_lines(text)
    except OSError as error:
        raise ConfigError([f"{path}: cannot be read: {reason(error)}"]) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError([f"{path}:{line}: is not UTF-8 text; save it as UTF-8"]) from error
    except RecursionError as error:
        raise ConfigError([f"{path}: brackets are nested too deeply"]) from error
    except ValueError as error:
        words = str(error)
        place = _PLACE.search(words)
        head = f"{path}:{place[1]}:{place[2]}" if place and place[1] else str(path)
        what = words[: place.start()] if place else words
        end = " at the end of the file" if place and not place[1] else ""
        raise ConfigError([f"{head}: is not TOML: {what[:1].lower()}{what[1:]}{end}"]) from error


def _dotted(where: lines.Path) -> str:
    """hub.port, nodes[2].hosts: tables of a list are counted from one."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part + 1}]"
        else:
            key = part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False)
            text += f".{key}" if text else key
    return text
