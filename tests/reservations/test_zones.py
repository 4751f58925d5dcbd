"""Time zones by name, and this machine's."""

from datetime import datetime
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, available_timezones

import pytest

from gpulse.errors import WhenError
from gpulse.reservations.zones import MARKS, own_zone, own_zone_or_utc, zone_called, zone_of


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
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"),
        ("UTC", "UTC"),
        ("UTC0", "UTC"),
        ("UTC-0", "UTC"),
        ("<UTC>+00:00", "UTC"),
        ("GMT", "GMT"),
        ("GMT0", "UTC"),
    ],
)
def test_by_the_environment(monkeypatch: pytest.MonkeyPatch, told: str, zone: str):
    monkeypatch.setenv("TZ", told)
    assert own_zone().key == zone


@pytest.mark.parametrize(
    "told",
    [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "CET-1CEST",
        "UTC+2",
        "Foo/Bar",
        ":Foo/Bar",
        "Europe",
        ":",
        "/etc/passwd",
        "/usr/share/zoneinfo/Foo",
    ],
)
def test_what_names_none_is_not_taken_as_utc(monkeypatch: pytest.MonkeyPatch, told: str):
    monkeypatch.setenv("TZ", told)
    with pytest.raises(WhenError) as caught:
        own_zone()
    assert str(caught.value).startswith(f"TZ={told} is no name of a time zone; set TZ")
    zone, trouble = own_zone_or_utc()
    assert zone.key == "UTC", "a hub starts all the same"
    assert trouble.startswith(f"TZ={told} is no name of a time zone; set TZ")
    assert trouble.endswith("or reservations.zone; until then times without a zone are taken as UTC")


def test_a_hub_has_no_trouble_with_a_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert own_zone_or_utc() == (ZoneInfo("Asia/Tokyo"), "")


def test_a_path_that_leads_to_a_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    folder = tmp_path / "zoneinfo" / "Europe"
    folder.mkdir(parents=True)
    (folder / "Vienna").touch()
    (tmp_path / "localtime").symlink_to(folder / "Vienna")
    monkeypatch.setenv("TZ", f":{tmp_path / 'localtime'}")
    assert own_zone().key == "Europe/Vienna"


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


class TestACopy:
    """/etc/localtime as a file without a name, as containers have it."""

    @pytest.fixture(autouse=True)
    def not_told(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.delenv("TZ", raising=False)

    @staticmethod
    def copy(name: str, folder: Path) -> Path:
        file = next(Path(root) / name for root in TZPATH if (Path(root) / name).is_file())
        (folder / "localtime").write_bytes(file.read_bytes())
        return folder / "localtime"

    def test_it_is_known_by_the_name_beside_it(self, tmp_path: Path):
        (tmp_path / "timezone").write_text("Europe/Berlin\n")
        assert own_zone(self.copy("Europe/Berlin", tmp_path), tmp_path / "timezone").key == "Europe/Berlin"

    def test_utc_needs_no_name(self, tmp_path: Path):
        assert own_zone(self.copy("Etc/UTC", tmp_path), tmp_path / "nothing").key == "UTC"

    @pytest.mark.parametrize("beside", [None, "", "Etc/UTC", "Europe/London", "Mars/Olympus"])
    def test_else_it_is_not_guessed(self, tmp_path: Path, beside: str | None):
        if beside is not None:
            (tmp_path / "timezone").write_text(beside)
        localtime = self.copy("Europe/Berlin", tmp_path)
        with pytest.raises(WhenError, match="does not say the name of its time zone; set TZ to the name of yours"):
            own_zone(localtime, tmp_path / "timezone")
        assert own_zone_or_utc(localtime, tmp_path / "timezone")[0].key == "UTC"

    def test_what_is_no_zone_at_all(self, tmp_path: Path):
        (tmp_path / "localtime").write_text("Europe/Berlin")
        with pytest.raises(WhenError, match="does not say the name"):
            own_zone(tmp_path / "localtime", tmp_path / "nothing")


def test_names_in_small_letters():
    assert zone_called("america/port-au-prince") == ZoneInfo("America/Port-au-Prince")
    assert zone_called("mars/olympus") is None


def test_all_that_clocks_are_called_today_is_known():
    days = [datetime(2026, month, 1) for month in (1, 7)]
    names = {ZoneInfo(name).tzname(day) or "" for name in available_timezones() - {"Factory"} for day in days}
    assert {name.lower() for name in names if name.isalpha()} <= MARKS
