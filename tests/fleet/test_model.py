"""The hub's types are those of the probe's schema, field by field."""

from typing import get_args

import msgspec
import pytest

from gpulse.fleet import health, model, updates
from gpulse.fleet.columns import HOT
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
    assert [name for name in RECORDS if not hasattr(model, name)] == ["Update"]


def test_an_update_is_read_in_two_goes():
    """What counts on arrival, and the columns when somebody looks."""
    read = {*updates.Arrival.__struct_fields__, *updates.PART_DECODERS}
    assert read == {field.name for field in RECORDS["Update"]}


def test_hot_figures_are_fields_of_a_gpu():
    assert set(updates.Hot.__struct_fields__) <= set(model.Gpu.__struct_fields__)
    assert updates.Hot.__struct_fields__ == (*HOT, *health.HEALTH_FIELDS, "failed_fields")
