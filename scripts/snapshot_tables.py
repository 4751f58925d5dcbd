"""Writes the field tables of docs/snapshot.md from the schema: `python scripts/snapshot_tables.py`."""

import re
from pathlib import Path

from gpulse_probe.schema import RECORDS

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "snapshot.md"
TABLE = re.compile(r"(<!-- fields of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(record: str) -> str:
    """One record as a Markdown table."""
    lines = ["| field | type | unit | kind | meaning |", "|---|---|---|---|---|"]
    lines += [
        f"| `{field.name}` | {_type(field.type)} | {field.unit} | {field.kind} | {field.meaning} |"
        for field in RECORDS[record]
    ]
    return "\n".join(lines) + "\n"


def with_tables(document: str) -> str:
    return TABLE.sub(lambda found: found[1] + table(found[2]) + found[3], document)


def _type(name: str) -> str:
    inner = name.strip("[]")
    shown = f"[{inner}](#{inner.lower()})" if inner in RECORDS else inner
    return f"list of {shown}" if name.startswith("[") else shown


if __name__ == "__main__":
    DOCUMENT.write_text(with_tables(DOCUMENT.read_text("utf-8")), "utf-8")
