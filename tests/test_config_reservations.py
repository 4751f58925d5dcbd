"""[reservations]: what may stand there, and what it means."""

import pytest

from gpulse.config import Limits, load
from gpulse.errors import ConfigError


def read(tmp_path, text):
    path = tmp_path / "gpulse.toml"
    path.write_text(text, "utf-8")
    return load(path).reservations


def test_limits_by_role(tmp_path):
    settings = read(tmp_path, "[reservations.limits.member]\nlongest_hours = 24\nahead_days = 0\nmost_gpus = 8\n")
    assert settings.limits_of("member") == Limits(longest_hours=24, most_gpus=8, most_reservations=50)
    assert settings.limits_of("admin") == Limits()
    settings = read(tmp_path, "[reservations.limits.admin]\nmost_gpus = 32\n")
    assert settings.limits_of("admin") == Limits(most_gpus=32)
    assert settings.limits_of("member") == Limits(ahead_days=60, longest_hours=336, most_reservations=50)
    usual = read(tmp_path, "")
    assert usual.limits_of("member") == Limits(ahead_days=60, longest_hours=336, most_reservations=50)


def test_a_zone_of_its_own(tmp_path):
    assert read(tmp_path, '[reservations]\nzone = "Europe/Berlin"\n').zone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('zone = "Mars/Olympus"', ':2: reservations.zone: "Mars/Olympus" is no time zone; allowed: a name such as'),
        ('zone = "../../etc/passwd"', "is no time zone"),
        ('zone = "/etc/localtime"', "is no time zone"),
        ('zone = "Europe"', "is no time zone"),
        ("no_show_minutes = 0", ":2: reservations.no_show_minutes: cannot be 0; allowed: minutes, 1 to 10080"),
        ("release_no_shows = 1", "allowed: true or false"),
        ("release_minutes = 0", "reservations.release_minutes: cannot be 0; allowed: minutes, 1 to 10080"),
        ("limits = { member = { most_gpus = -1 } }", "reservations.limits.member.most_gpus: cannot be -1"),
        ("limits = { members = {} }", 'did you mean "member"?'),
    ],
)
def test_mistakes(tmp_path, text, told):
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, f"[reservations]\n{text}\n")
    (problem,) = caught.value.problems
    assert told in problem
