"""Links that sign in once, whoever is first."""

import subprocess
import sys

import pytest

from gpulse.auth import secret_text
from gpulse.errors import SignInRefused
from tests.patience import PATIENCE_SECONDS

REDEEM = """
import asyncio, sys
from pathlib import Path
from gpulse.auth.directory import Directory
from gpulse.errors import SignInRefused
from gpulse.store import Records
directory = Directory(Records(Path(sys.argv[1]), sys.argv[2] or None))
print("ready", flush=True)
code = sys.stdin.readline().strip()
try:
    print(asyncio.run(directory.links.redeem(code)).name)
except SignInRefused as refused:
    print(refused.code)
"""


def refused(doing, work):
    with pytest.raises(SignInRefused) as caught:
        doing(work)
    return caught.value.status, caught.value.code


def test_once(directory, doing, bob):
    code = doing(directory.links.make(bob.id))
    assert doing(directory.links.redeem(code)).id == bob.id
    assert refused(doing, directory.links.redeem(code)) == (401, "link_bad")


def test_soon_enough(directory, doing, clock, bob):
    hour, minute = doing(directory.links.make(bob.id)), doing(directory.links.make(bob.id, 60))
    clock.now += 60
    assert refused(doing, directory.links.redeem(minute)) == (401, "link_bad")
    clock.now += 3539
    assert doing(directory.links.redeem(hour)).name == "bob"
    late = doing(directory.links.make(bob.id))
    clock.now += 3600
    assert refused(doing, directory.links.redeem(late)) == (401, "link_bad")


def test_codes_that_are_none(directory, doing, bob):
    code = doing(directory.links.make(bob.id))
    other = secret_text.make("gpl")[0]
    mixed = "_".join([*code.split("_")[:2], other.split("_")[2]])
    for wrong in ("", "x", other, mixed, code[:-1], code.replace("gpl", "gpk"), code + "\n"):
        assert refused(doing, directory.links.redeem(wrong)) == (401, "link_bad")
    # A wrong guess does not use it up.
    assert doing(directory.links.redeem(code)).name == "bob"


def test_of_an_account_another_process_has_just_made(directory, others, doing):
    ann = doing(others.accounts.add("ann", "admin"))
    code = doing(others.links.make(ann.id))
    assert doing(directory.links.redeem(code)) == ann
    assert directory.sessions.check(*doing(directory.sessions.begin(ann.id, "", ""))).name == "ann"


def test_of_two_processes_one_is_let_in(folder, records_url, directory, doing, bob):
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen([sys.executable, "-c", REDEEM, folder, records_url or ""], stdin=pipe, stdout=pipe, text=True)
        for _ in range(2)
    ]
    try:
        assert [process.stdout.readline() for process in started] == ["ready\n"] * 2
        code = doing(directory.links.make(bob.id))
        for process in started:
            process.stdin.write(code + "\n")
            process.stdin.flush()
        told = sorted(process.communicate(timeout=PATIENCE_SECONDS)[0].strip() for process in started)
    finally:
        for process in started:
            process.kill()
            process.wait()
    assert told == ["bob", "link_bad"]
