"""The lines in a person's crontab: there once, gone when they should, and all other lines as they were."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse_probe.service import crontab, programs
from gpulse_probe.service.folder import ServiceError
from gpulse_probe.service.services import Service
from tests.probe.machine import CRONTAB


def service(node: str = "gpu01") -> Service:
    path = f"/home/a b/100%/{node}"
    return Service(f"gpulse-agent-{node}", "an agent", path, ["/usr/bin/python3", f"{path}/agent.pyz", "service"])


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A crontab that is a file of the test's own."""
    (tmp_path / "crontab").write_text("#!/bin/sh\n" + CRONTAB.format(file=tmp_path / "table"))
    (tmp_path / "crontab").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "table"


def test_lines_are_put_once_and_taken_away(file):
    assert crontab.put(service())
    assert not crontab.put(service())
    assert crontab.there(service())
    lines = file.read_text().splitlines()
    assert [line.split()[0] for line in lines if line[0] != "#"] == ["@reboot", lines[2].split()[0]]
    assert lines[2].split()[1:5] == ["*", "*", "*", "*"]
    assert crontab.take_away(service())
    assert not crontab.take_away(service())
    assert not crontab.there(service())
    assert not file.exists()


def test_the_command_survives_cron_and_shell(file):
    crontab.put(service())
    line = next(line for line in file.read_text().splitlines() if line.startswith("@reboot"))
    # cron takes \% for %; a bare one would end the command.
    assert line.count("%") == line.count("\\%") == 2
    words = shlex.split(line.replace("\\%", "%"))
    assert words[1:6] == [
        "/usr/bin/python3",
        "/home/a b/100%/gpu01/agent.pyz",
        "service",
        "keep",
        "/home/a b/100%/gpu01",
    ]


def test_a_real_crontab_takes_the_lines(file):
    real = next((path for path in (Path("/usr/bin/crontab"), Path("/bin/crontab")) if path.exists()), None)
    if real is None:
        pytest.skip("cron is missing")
    crontab.put(service())
    checked = subprocess.run([real, "-n", file], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    file.write_text("99 * * * * nonsense\n")
    assert subprocess.run([real, "-n", file], capture_output=True, check=False).returncode, "it does not check"


LINES = st.lists(
    st.sampled_from(
        [
            b"MAILTO=me\n",
            b"0 3 * * * backup\n",
            b"# gpulse-agent-gpu01: begin of mine\n",
            b" # gpulse-agent-gpu01: begin, made by gpulse\n",
            b"@reboot other service keep going\n",
            b"\n",
            b"\xff\x00\n",
        ]
    )
).map(b"".join)


@given(before=LINES, after=LINES, unfinished=st.booleans())
def test_all_other_lines_stay_as_they_were(before, after, unfinished):
    if unfinished:
        after += b"1 2 3 4 5 no newline at the end"
    one, two = service("gpu01"), service("gpu02")
    first = crontab._with(before, one.name, crontab._block(one))
    assert first == before + crontab._block(one)
    both = crontab._with(first + after, two.name, crontab._block(two))
    other = service("gpu01")
    other.launcher = ["/opt/python", "x.pyz", "service"]
    replaced = crontab._with(both, one.name, crontab._block(other))
    newline = b"\n" if unfinished else b""
    assert replaced == before + crontab._block(other) + after + newline + crontab._block(two)
    assert crontab._with(crontab._with(replaced, one.name, b""), two.name, b"") == before + after + newline


def test_lines_of_others_within_ours_are_kept():
    ours = crontab._block(service()).splitlines(keepends=True)
    text = b"".join([*ours[:2], b"0 3 * * * backup\n", *ours[2:]])
    assert b"backup" in crontab._with(text, service().name, b"")
    assert crontab._with(b"".join(ours[:3]) + b"0 3 * * * backup\n", service().name, b"") == b"0 3 * * * backup\n"


def test_a_failure_is_never_taken_for_an_empty_crontab(file, monkeypatch):
    program = file.with_name("crontab")
    program.write_text("#!/bin/sh\necho 'cannot reach the disk' >&2; exit 1\n")
    with pytest.raises(crontab.NoCrontab, match="cannot reach the disk"):
        crontab.put(service())
    assert not crontab.take_away(service())
    program.unlink()
    monkeypatch.setenv("PATH", str(file.parent))
    with pytest.raises(crontab.NoCrontab, match="there is no crontab command"):
        crontab.put(service())


def test_a_program_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(programs, "SECONDS", 0.2)
    with pytest.raises(ServiceError, match=r"sleep 60 did not end within 0.2 s"):
        programs.run(["sleep", "60"])
