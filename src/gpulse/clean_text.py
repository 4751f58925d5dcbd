"""Text on its way to a terminal or a log. Everything passes one door, `clean`: a sentence, JSON, or a log record."""

import logging
import re
import sys

from gpulse_probe.printable import clean as _clean

# In JSON only strings hold characters beyond ASCII, so each of these may be written as an escape there.
_UNSAFE_IN_JSON = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\xa0\xad]|[^\x00-\xff]")


def clean(text: str) -> str:
    """Return the text on one line, with everything that a terminal would obey written out: \\x1b, \\u202e."""
    cleaned: str = _clean(text)  # type: ignore[no-untyped-call] # the probe has no annotations
    return cleaned


def clean_json(text: str) -> str:
    """Return the same JSON with every character that does not print as \\uXXXX; its data stays the same."""
    return text if text.isascii() and text.isprintable() else _UNSAFE_IN_JSON.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    one = found[0]
    if one.isprintable():
        return one
    if one in "\r\x0b\x0c":
        # Between two values, where JSON allows no escape.
        return " "
    units = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


class CleanFormatter(logging.Formatter):
    """One clean line for a message; the lines of a traceback are clean, too, and none begins at the margin."""

    def format(self, record: logging.LogRecord) -> str:
        lines = [f"gpulse: {clean(record.getMessage())}"]
        if record.exc_info:
            lines += [f"  {clean(line)}" for line in self.formatException(record.exc_info).splitlines()]
        if record.stack_info:
            lines += [f"  {clean(line)}" for line in record.stack_info.splitlines()]
        return "\n".join(lines)


def log_to_stderr() -> None:
    """Send the log of this process, and of the libraries in it, to standard error; nothing else handles it."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(CleanFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
