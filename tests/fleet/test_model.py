"""The hub's types are those of the probe's schema, field by field."""

from typing import get_args

import msgspec
import pytest

from gpulse.fleet import model, updates
from gpulse_probe.schema import RECORDS

SIMPLE = {"str": str, "int": int, "float": float, "bool": bool}


def expected(name: str) -> object:
    inner = name.strip("[]")
    kind = SIMPLE.get(inner) or getattr(model, inner)
    return list[kind] if name.startswith("[") else kind


@pytest.mark.parametrize("record", [name for name in RECORDS if hasattr(model, name)])
def test_records(record):
    struct = getattr(model, record)
    fields = {field.name: field for field in msgspec.structs.fields(struct)}
    assert list(fields) == [field.name for field in RECORDS[record]]
    for field in RECORDS[record]:
        kinds = [kind for kind in get_args(fields[field.name].type) if kind is not type(None)]
        assert kinds == [expected(field.type)], f"{record}.{field.name}"


def test_every_record_has_a_type():
    assert [name for name in RECORDS if not hasattr(model, name) and not hasattr(updates, name)] == []
