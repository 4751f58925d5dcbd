"""The keys that commands send to hubs: from the environment, or from `gpulse login`."""

import json
import os
import secrets
from pathlib import Path

from gpulse.errors import HubError

VARIABLE = "GPULSE_KEY"


def find(url: str) -> str | None:
    """Return the key for a hub: from the environment, else the one that `gpulse login` kept."""
    return os.environ.get(VARIABLE, "").strip() or read().get(url)


def place() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config").expanduser() / "gpulse" / "keys.json"


def read() -> dict[str, str]:
    """By the address of the hub."""
    path = place()
    try:
        found = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise HubError(f"{path} cannot be read: {error}; mend or remove it, then: gpulse login") from None
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise HubError(f"{path} is not as gpulse login writes it; remove it, then: gpulse login")
    return found


def keep(url: str, key: str | None) -> None:
    """For later commands, in a file that only its owner can read; None takes the key away."""
    found = read()
    if key is not None:
        found[url] = key
    elif found.pop(url, None) is None:
        return
    path = place()
    new = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)
            file.write("\n")
        # Whole or not at all: other keys are in it too.
        new.replace(path)
    except OSError as error:
        raise HubError(f"{path} cannot be written: {error.strerror}; make room, or the right to write, there") from None
    finally:
        new.unlink(missing_ok=True)
