"""Undocumented means red."""

import re
import subprocess
from pathlib import Path

from gpulse_probe.schema import GPU_FACTS, RECORDS
from scripts.screenshots import MOST_BYTES, SHOTS
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


def documents() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(text: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


def named(document: Path) -> list[str]:
    """Addresses of links and pictures."""
    text = without_code(document.read_text("utf-8"))
    return re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'(?:src|srcset|href)="([^"]+)"', text)


def anchors(document: Path) -> set[str]:
    """Those that forges make of titles."""
    text = re.sub(r"```.*?```", "", document.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    for document in documents():
        for address in named(document):
            if re.match(r"[a-z]+:", address):
                continue
            path, _, anchor = address.partition("#")
            target = (document.parent / path).resolve() if path else document
            assert target.is_relative_to(ROOT), f"{document.relative_to(ROOT)}: {address}"
            assert target.exists(), f"{document.relative_to(ROOT)}: {address}"
            assert not anchor or anchor in anchors(target), f"{document.relative_to(ROOT)}: {address}"


def test_every_view_of_the_page_has_a_document():
    routes = (ROOT / "web/src/lib/route.svelte.ts").read_text("utf-8")
    names = re.search(r"type PageName = (.+);", routes)
    assert names
    views = set(re.findall(r'"(\w+)"', names[1])) - {"missing"}
    assert {"fleet", "node", "gpu", "people"} <= views
    for view in views:
        assert (ROOT / f"docs/page/{view}.md").exists(), view


def test_the_documents_of_the_page_name_what_is_there():
    fleet = (ROOT / "docs/page/fleet.md").read_text("utf-8")
    settings = (ROOT / "web/src/lib/settings.svelte.ts").read_text("utf-8")
    for density in re.findall(r'"(\w+)"', re.search(r"DENSITIES = (.+?) as", settings)[1]):
        assert f"`{density}`" in fleet, density
    codes = (ROOT / "web/src/pages/fleet/map/codes.ts").read_text("utf-8")
    for colouring in re.findall(r'"(\w+)"', re.search(r"COLOURINGS = (.+?) as", codes)[1]):
        assert f"`{colouring}`" in fleet, colouring
    look = (ROOT / "docs/page/look.md").read_text("utf-8").lower()
    for theme in set(re.findall(r'"(\w+)"', re.search(r"THEMES = (.+?) as", settings)[1])) - {"auto"}:
        assert f"`{theme}`" in look, theme


def test_readme_leads_to_every_document():
    linked = {(ROOT / address.partition("#")[0]).resolve() for address in named(ROOT / "README.md")}
    for document in sorted((ROOT / "docs").rglob("*.md")):
        assert document in linked or document.parent in linked, document.relative_to(ROOT)


def test_pictures_are_those_the_script_makes_and_not_too_large():
    images = ROOT / "docs/images"
    made = {f"{shot.name}.png" for shot in SHOTS}
    shown = {Path(address).name for document in documents() for address in named(document) if address.endswith(".png")}
    assert shown == made
    there = {path.name: path for path in images.iterdir()}
    assert set(there) == made
    assert all(path.read_bytes().startswith(b"\x89PNG\r\n") for path in there.values())
    assert sum(path.stat().st_size for path in there.values()) < MOST_BYTES


def test_readme_shows_light_dark_and_a_phone():
    text = (ROOT / "README.md").read_text("utf-8")
    dark = re.search(r'<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\s+<img src="([^"]+)"', text)
    assert dark
    assert (dark[1], dark[2]) == ("docs/images/fleet-dark.png", "docs/images/fleet-light.png")
    assert "docs/images/phone.png" in named(ROOT / "README.md")
