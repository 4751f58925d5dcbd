"""Time zones by name, and this machine's."""

from pathlib import Path

import pytest

from gpulse.errors import WhenError
from gpulse.reservations.zones import own_zone, zone_of


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/passwd", "Europe", "x" * 5000, "a\0b"])
def test_what_is_no_zone(name: str):
    with pytest.raises(WhenError, match="is no time zone"):
        zone_of(name)


@pytest.mark.parametrize(
    ("told", "zone"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":America/New_York", "America/New_York"),
        (":/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("CET-1CEST", "UTC"),
    ],
)
def test_by_the_environment(monkeypatch: pytest.MonkeyPatch, told: str, zone: str):
    monkeypatch.setenv("TZ", told)
    assert own_zone().key == zone


def test_by_the_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.delenv("TZ", raising=False)
    folder = tmp_path / "zoneinfo" / "Europe"
    folder.mkdir(parents=True)
    (folder / "Vienna").touch()
    (tmp_path / "localtime").symlink_to(folder / "Vienna")
    assert own_zone(tmp_path / "localtime").key == "Europe/Vienna"
    (tmp_path / "timezone").write_text("Europe/Oslo\n")
    assert own_zone(tmp_path / "nothing", tmp_path / "timezone").key == "Europe/Oslo", "a copy, as in containers"
    assert own_zone(tmp_path / "nothing", tmp_path / "nothing").key == "UTC"
