"""Undocumented means red: every setting is in docs/configuration.md and in the example, with its default."""

import re
import tomllib
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpulse.config import (
    Access,
    Config,
    ConsulTable,
    DnsTable,
    DropFolderTable,
    HostFileTable,
    Hub,
    IniFileTable,
    LimitSettings,
    MemberLimits,
    Nodes,
    Oidc,
    Privacy,
    Proxy,
    Reservations,
    Ssh,
    Store,
    Thresholds,
    Tls,
    Web,
    load,
)
from gpulse.config.hosts import parse
from gpulse.config.sizes import size

DOCS = Path(__file__).resolve().parent.parent / "docs"
SECTIONS: dict[str, type[msgspec.Struct]] = {
    "hub": Hub,
    "store": Store,
    "web": Web,
    "access": Access,
    "privacy": Privacy,
    "reservations": Reservations,
    "tls": Tls,
    "ssh": Ssh,
    "nodes": Nodes,
    "host_files": HostFileTable,
    "ini_files": IniFileTable,
    "drop_folders": DropFolderTable,
    "consul": ConsulTable,
    "dns": DnsTable,
    "thresholds": Thresholds,
}


def chapters() -> dict[str, str]:
    parts = re.split(r"^## \[+(\w+)\]+$", (DOCS / "configuration.md").read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def uncommented() -> str:
    return re.sub(r"^#(?! )", "", (DOCS / "gpulse.toml").read_text("utf-8"), flags=re.MULTILINE)


def default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def as_toml(value: Any) -> Any:
    if isinstance(value, Path):
        home = str(Path.home())
        return str(value).replace(home, "~", 1) if str(value).startswith(home + "/") else str(value)
    if isinstance(value, msgspec.Struct):
        return {name: as_toml(item) for name, item in msgspec.structs.asdict(value).items() if item != ()}
    return [as_toml(item) for item in value] if isinstance(value, tuple) else value


def test_every_section_has_a_chapter():
    assert list(chapters()) == [field.name for field in msgspec.structs.fields(Config)]


# Tables within a section.
INNER: dict[str, type[msgspec.Struct]] = {
    "access.proxy": Proxy,
    "access.oidc": Oidc,
    "reservations.limits.member": MemberLimits,
    "reservations.limits.admin": LimitSettings,
}


def chapter_of(table: str) -> str:
    """What is said of a section, or of a table in it, without what follows."""
    chapter = chapters()[table.partition(".")[0]].partition("\n## ")[0]
    own, *inner = re.split(r"^### \[([\w.]+)\]$", chapter, flags=re.MULTILINE)
    return dict(zip(inner[::2], inner[1::2], strict=True))[table] if "." in table else own


@pytest.mark.parametrize("section", [*SECTIONS, *INNER])
def test_every_key_is_documented_with_its_default(section):
    chapter = chapter_of(section)
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", chapter, flags=re.MULTILINE))
    fields = {field.name: field for field in msgspec.structs.fields((SECTIONS | INNER)[section])}
    assert sorted(rows) == sorted(fields)
    for name, field in fields.items():
        if field.required:
            assert rows[name] == "needed", name
        elif default(field) is None:
            assert rows[name] == "–", name
        else:
            told = tomllib.loads("it = " + rows[name].strip("`"))["it"]
            assert told == as_toml(default(field)), name
            assert type(told) is type(as_toml(default(field))), name


def test_the_example_changes_nothing_as_it_is():
    assert load(DOCS / "gpulse.toml") == Config()


def test_the_example_is_valid_and_complete_without_its_marks(tmp_path):
    path = tmp_path / "gpulse.toml"
    path.write_text(uncommented(), "utf-8")
    config = load(path)
    assert config.nodes[1].texts() == ("login", "me@gpu[20-23,40]:2222", "[2001:db8::7]")
    tables = tomllib.loads(uncommented())
    assert list(tables) == [field.name for field in msgspec.structs.fields(Config)]
    for section, kind in SECTIONS.items():
        # Not all keys of a node table go together: those of its tables together are all.
        given = set().union(*tables[section]) if isinstance(tables[section], list) else tables[section]
        assert sorted(given) == sorted(field.name for field in msgspec.structs.fields(kind)), section
    for table, kind in INNER.items():
        shown = reduce(getitem, table.split("."), tables)
        assert sorted(shown) == sorted(field.name for field in msgspec.structs.fields(kind)), table


def test_the_example_shows_the_defaults():
    tables = tomllib.loads(uncommented())
    # What is said about the nodes is of no use as its default; how they are asked for is.
    for section, keys in {
        "consul": ("url", "passing_only", "wait_seconds", "refresh_seconds"),
        "dns": ("record", "refresh_seconds"),
    }.items():
        for field in msgspec.structs.fields(SECTIONS[section]):
            if field.name in keys:
                assert tables[section][0][field.name] == as_toml(default(field)), f"{section}.{field.name}"
    for section in ("hub", "web", "access", "privacy", "reservations", "tls", "ssh", "thresholds"):
        for field in msgspec.structs.fields(SECTIONS[section]):
            shown = tables[section][field.name]
            if field.name == "held_memory_bytes":
                shown = size(shown)
            if default(field) is not None:
                assert shown == as_toml(default(field)), f"{section}.{field.name}"


def test_the_table_of_hosts_is_true(tmp_path, monkeypatch):
    (tmp_path / "groups.conf").write_text("[Main]\ndefault: slurm\n[slurm]\nmap: echo n[1-2]\n")
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    chapter = (DOCS / "configuration.md").read_text("utf-8").partition("\n## Hosts\n")[2]
    rows = re.findall(r"^\| (`.+?) \| ", chapter, flags=re.MULTILINE)
    texts = [text for row in rows for text in re.findall(r"`([^`]+)`", row)]
    found = {text: " ".join(map(str, parse(text))) for text in texts}
    assert len(found) == 14
    assert found["gpu[1-9/2]"] == "gpu1 gpu3 gpu5 gpu7 gpu9"
    assert found["me@@rack1"] == "me@n1 me@n2"
    assert found["@slurm:gpu:2222"] == "n1:2222 n2:2222"
    assert found["gpu[01-16]!gpu03"].count("gpu") == 15
