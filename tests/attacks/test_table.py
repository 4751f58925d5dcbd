"""SECURITY.md names tests that exist, and every attack in here is in it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = (ROOT / "SECURITY.md").read_text("utf-8").partition("## Attacks and their tests")[2]
NAMED = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TABLE)


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    return {one.name for one in tree.body if isinstance(one, ast.FunctionDef) and one.name.startswith("test_")}


def test_every_test_that_is_named_exists():
    assert len(NAMED) > 40
    for file, name in NAMED:
        assert (ROOT / file).is_file(), file
        assert not name or name in names_in(ROOT / file), f"{file}::{name}"


def test_every_attack_has_a_test():
    rows = [line for line in TABLE.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for row in rows:
        assert re.search(r"`tests/", row), row


def test_every_file_of_attacks_is_named():
    here = {f"tests/attacks/{path.name}" for path in Path(__file__).parent.glob("test_*.py")}
    assert here - {file for file, _ in NAMED} == {"tests/attacks/test_table.py"}
