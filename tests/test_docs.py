"""Undocumented means red."""

import re
import subprocess
from pathlib import Path

from gpulse_probe.schema import GPU_FACTS, RECORDS
from scripts.snapshot_tables import DOCUMENT, with_tables

ROOT = Path(__file__).resolve().parent.parent


def test_snapshot_tables_are_those_of_the_schema():
    document = DOCUMENT.read_text("utf-8")
    assert with_tables(document) == document, "run: python scripts/snapshot_tables.py"


def test_every_record_has_a_table():
    assert re.findall(r"<!-- fields of (\w+) -->", DOCUMENT.read_text("utf-8")) == list(RECORDS)


def test_types_of_the_schema_exist():
    known = {"str", "int", "float", "bool", *RECORDS}
    for record, fields in RECORDS.items():
        assert len({field.name for field in fields}) == len(fields), record
        for field in fields:
            assert field.type.strip("[]") in known, f"{record}.{field.name}"
            assert field.kind in {"fact", "value", "counter", "part"}, f"{record}.{field.name}"
            assert field.meaning, f"{record}.{field.name}"


def test_units_are_in_the_names():
    endings = {"bytes": "_bytes", "watts": "_watts", "°C": "_celsius", "hertz": "_hertz", "ratio": "_ratio"}
    endings |= {"seconds": "_seconds", "joules": "_joules", "bytes per second": "_bytes_per_second"}
    for record, fields in RECORDS.items():
        for field in fields:
            name = field.name.removesuffix("_total")
            if field.unit in endings:
                assert name.endswith(endings[field.unit]), f"{record}.{field.name}"
            if field.kind == "counter" and field.name != "seq":
                assert field.name.endswith("_total"), f"{record}.{field.name}"


def test_identity_of_a_gpu_is_a_fact():
    assert {"index", "uuid", "name", "memory_total_bytes", "parent_uuid"} <= GPU_FACTS


def test_readme_names_targets_that_exist():
    listed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in re.findall(r"`make ([a-z]+)`", (ROOT / "README.md").read_text("utf-8")):
        assert f"make {target} " in listed, target


def test_bare_make_lists_the_targets():
    assert subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.count("make ") >= 6
