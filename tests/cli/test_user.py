"""gpulse user and gpulse audit, as people run them."""

import asyncio
import getpass
import json
import os
import pty
import re
import select
import subprocess
import time
from functools import partial
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from gpulse.auth import local_socket
from gpulse.auth.directory import Directory
from gpulse.cli.commands import app
from gpulse.errors import SignInRefused
from gpulse.reservations import writing
from gpulse.reservations.model import Place, Wanted
from gpulse.reservations.rules import By
from gpulse.store import Records
from tests.cli.hub import GPULSE, env
from tests.patience import PATIENCE_SECONDS

PASSWORD = "correct horse battery"  # noqa: S105 - that of a test


@pytest.fixture
def data(tmp_path):
    return tmp_path / "data"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def gpulse(tmp_path, data, monkeypatch):
    """Runs a command on a folder of its own, in this process: there are many of them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments, stdin=""):
        result = CliRunner().invoke(app, [*arguments, "--data", str(data)], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def accounts(data):
    """What is in the folder, made and asked without a command."""

    def work(ask):
        with Records(data) as records:
            directory = Directory(records)

            async def asked():
                return await ask(directory)

            return asyncio.run(asked())

    return work


def made(*people):
    async def work(directory):
        for name, role in people:
            await directory.accounts.add(name, role)

    return work


def signs_in(name, password):
    async def work(directory):
        try:
            return (await directory.accounts.check_password(name, password)).name
        except SignInRefused as refused:
            return refused.code

    return work


async def audited(directory):
    """Without what the test did itself."""
    entries = await directory.audit.entries()
    return [(one.who, one.way, one.action, one.target) for one in entries if one.who == ME]


ME = f"local: {getpass.getuser()}"


def test_added_with_a_password_from_a_pipe(data, tmp_path, accounts):
    words = ("user", "add", "ann", "--role", "admin", "--display", "Ann", "--password-stdin", "--data", str(data))
    done = subprocess.run(
        [*GPULSE, *words],
        env=env(HOME=str(tmp_path)),
        input=PASSWORD + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "added ann as admin\n", "")
    assert accounts(signs_in("ann", PASSWORD)) == "ann"
    assert accounts(audited) == [(ME, "local", "account.add", "ann")]


def test_added_without_a_password_and_let_in_by_a_link(gpulse, accounts):
    done = gpulse("user", "add", "ann", "--no-password")
    assert (done.returncode, done.stdout) == (0, "added ann as viewer\n")
    assert "gpulse user link ann" in done.stderr
    done = gpulse("user", "link", "ann")
    match = re.fullmatch(r"http://127\.0\.0\.1:7070/#/sign-in/(gpl_\w{12}_\w{48})\n", done.stdout)

    async def redeem(directory):
        return (await directory.links.redeem(match[1])).name, await audited(directory)

    name, entries = accounts(redeem)
    assert (name, entries[0]) == ("ann", (ME, "local", "link.make", "ann"))
    with pytest.raises(SignInRefused):
        accounts(redeem)


@pytest.mark.parametrize(
    ("settings", "url", "start"),
    [
        ('[hub]\nport = 7171\n[web]\nbase_path = "/gpu"\n', None, "http://127.0.0.1:7171/gpu/#/sign-in/gpl_"),
        ('[hub]\nhost = "::1"\n[tls]\nself_signed = true\n', None, "https://[::1]:7070/#/sign-in/gpl_"),
        ('[hub]\nhost = "0.0.0.0"\n', None, f"http://{os.uname().nodename}:7070/#/sign-in/gpl_"),
        ("[hub]\nport = 0\n", "http://127.0.0.1:4711/", "http://127.0.0.1:4711/#/sign-in/gpl_"),
        ("", "https://0.0.0.0:4711/", f"https://{os.uname().nodename}:4711/#/sign-in/gpl_"),
    ],
)
def test_a_link_has_the_hubs_address(gpulse, accounts, data, tmp_path, settings, url, start):
    accounts(made(("ann", "admin")))
    (tmp_path / "gpulse.toml").write_text(settings)
    if url is not None:
        local_socket.place(data, url).write_text(f"/none\n{url}\n")
    done = gpulse("user", "link", "ann", "--expires", "15m")
    assert done.stdout.startswith(start), done.stderr


def test_a_link_for_who_comes_from_elsewhere(gpulse, accounts):
    accounts(made(("ann", "admin")))
    done = gpulse("user", "link", "ann", "--hub", "https://gpus.example.org/")
    assert done.stdout.startswith("https://gpus.example.org/#/sign-in/gpl_")


def test_roles_disabling_and_a_new_password(gpulse, accounts):
    accounts(made(("ann", "admin"), ("bob", "viewer"), ("eve", "viewer")))
    assert gpulse("user", "role", "Bob", "member").stdout == "bob is member\n"
    assert gpulse("user", "disable", "bob", "eve").stdout == "disabled bob\ndisabled eve\n"
    assert gpulse("user", "enable", "bob").stdout == "enabled bob\n"
    done = gpulse("user", "password", "bob", "--password-stdin", stdin=PASSWORD)
    assert done.stdout == "bob has a new password\n"
    assert accounts(signs_in("bob", PASSWORD)) == "bob"
    listed = {one["name"]: one for one in json.loads(gpulse("user", "list", "--json").stdout)}
    assert list(listed) == ["ann", "bob", "eve"]
    assert (listed["bob"]["role"], listed["bob"].get("disabled"), listed["bob"]["has_password"]) == (
        "member",
        None,
        True,
    )
    assert listed["eve"]["disabled"] is True
    done = gpulse("user", "list")
    assert done.stdout.splitlines()[0].split()[:4] == ["NAME", "ROLE", "STATE", "SIGNS"]
    assert done.stdout.splitlines()[-1] == "3 accounts: 1 admin, 1 member, 1 disabled"
    assert [entry[2:] for entry in accounts(audited)] == [
        ("account.password", "bob"),
        ("account.enable", "bob"),
        ("account.disable", "eve"),
        ("account.disable", "bob"),
        ("account.role", "bob"),
    ]


def test_connected_to_where_somebody_signs_in(gpulse, accounts):
    accounts(made(("ann", "admin"), ("bob", "viewer")))
    gpulse("user", "password", "bob", "--password-stdin", stdin=PASSWORD)
    link = gpulse("user", "link", "bob").stdout.strip().rpartition("/")[2]
    done = gpulse("user", "connect", "BOB", "--issuer", "https://sso.example", "--subject", "7 of 9")
    assert (done.returncode, done.stdout) == (0, "bob signs in by https://sso.example\n")
    assert accounts(audited)[0] == (ME, "local", "account.connect", "bob")

    async def comes(directory):
        account = await directory.accounts.upsert_external("https://sso.example", "7 of 9", "bobby", "member")
        with pytest.raises(SignInRefused):
            await directory.links.redeem(link)
        return account.name, account.role, account.has_password

    assert accounts(comes) == ("bob", "member", False)
    assert accounts(signs_in("bob", PASSWORD)) == "wrong_password"
    done = gpulse("user", "connect", "ann", "--issuer", "https://sso.example", "--subject", "7 of 9")
    assert (done.returncode, done.stdout) == (2, "")
    assert "that is bob, who has an account already" in done.stderr
    assert gpulse("user", "connect", "ann", "--proxy").stdout == "ann signs in by the proxy\n"


def test_what_who_is_shut_out_has_reserved_still_is_told(gpulse, accounts, data):
    accounts(made(("ann", "admin"), ("bob", "member"), ("eve", "member")))
    now = time.time()
    spans = [(-5, -1), (-1, 5), *((hours, hours + 1) for hours in range(6, 11))]
    ids = []
    with Records(data) as records:
        for first, last in spans:
            places = (Place("gpu1", "0"), Place("gpu1", "1"))
            wanted = Wanted(person="bob", places=places, start=now + first * 3600, end=now + last * 3600)
            # As it was made before it began.
            asked = records.write(partial(writing.make, wanted=wanted, by=By("ann", admin=True), now=now - 9 * 3600))
            ids += [one.id for one in asked.result()]
    done = gpulse("user", "disable", "bob", "eve")
    assert done.stdout == "disabled bob\ndisabled eve\n"
    lines = done.stderr.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("gpulse: bob still has gpu1:0-1 from ")
    assert lines[0].endswith(f"; gpulse cancel {ids[1]} lets go of them")
    assert lines[-1] == "gpulse: and 1 more: gpulse reservations lists them"


def test_who_is_shut_out_where_the_zone_has_no_name(gpulse, accounts, data, monkeypatch):
    """That makes nothing fail that has been done."""
    accounts(made(("ann", "admin"), ("bob", "member")))
    now = time.time()
    wanted = Wanted(person="bob", places=(Place("gpu1", "0"),), start=now, end=now + 3600)
    with Records(data) as records:
        records.write(partial(writing.make, wanted=wanted, by=By("ann", admin=True), now=now)).result()
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    done = gpulse("user", "disable", "bob")
    assert (done.returncode, done.stdout) == (0, "disabled bob\n")
    assert "bob still has gpu1:0 from" in done.stderr
    assert "UTC" in done.stderr


def test_all_are_disabled_or_none(gpulse, accounts):
    accounts(made(("ann", "admin"), ("bob", "viewer")))
    done = gpulse("user", "disable", "bob", "ann")
    assert (done.returncode, "ann is the last admin" in done.stderr) == (2, True)
    assert "disabled" not in gpulse("user", "list").stdout
    assert accounts(audited) == []


def test_keys_are_listed_and_go_with_the_sessions(gpulse, accounts):
    accounts(made(("ann", "admin"), ("bob", "viewer")))
    assert gpulse("user", "keys", "bob").stdout == "bob has no keys\n"

    async def signed_in(directory):
        bob = directory.accounts.by_name("bob").id
        for _ in range(2):
            await directory.sessions.begin(bob, "", "")
        return await directory.keys.create(bob, "nightly", ["read"])

    key = accounts(signed_in)
    shown = gpulse("user", "keys", "BOB")
    assert all(word in shown.stdout for word in (key.split("_")[1], "nightly", "live", "1 key: 1 live"))
    assert key.split("_")[2] not in shown.stdout + gpulse("user", "keys", "bob", "--json").stdout
    assert gpulse("user", "sign-out", "bob").stdout == "bob: ended 2 sessions\n"
    assert json.loads(gpulse("user", "keys", "bob", "--json").stdout)[0]["state"] == "live"
    assert gpulse("user", "sign-out", "bob", "--keys").stdout == "bob: ended 0 sessions and 1 key\n"
    assert json.loads(gpulse("user", "keys", "bob", "--json").stdout)[0]["state"] == "revoked"
    assert [one[2:] for one in accounts(audited)] == [
        ("key.revoke_all", "bob"),
        ("session.end_all", "bob"),
        ("session.end_all", "bob"),
    ]
    assert "there is no account 'eve'" in gpulse("user", "sign-out", "eve").stderr


def test_no_secret_is_listed(gpulse, accounts):
    gpulse("user", "add", "ann", "--role", "admin", "--password-stdin", stdin=PASSWORD)

    async def key(directory):
        return await directory.keys.create(directory.accounts.by_name("ann").id, "script", ["read"])

    secret = accounts(key).split("_")[2]
    code = gpulse("user", "link", "ann").stdout.strip().split("_")[2]
    shown = "".join(
        gpulse(*words).stdout
        for words in (("user", "list"), ("user", "list", "--json"), ("audit",), ("audit", "--json"))
    )
    assert '"keys": 1' in shown
    for one in (PASSWORD, secret, code, "argon2"):
        assert one not in shown


@pytest.mark.parametrize(
    ("arguments", "stdin", "words"),
    [
        (("add", "a b", "--no-password"), "", "cannot be the name of an account; take the person's login name"),
        (("add", "ANN", "--no-password"), "", "'ANN' is an account already"),
        (("add", "eve"), "", "there is no terminal to ask for the password; send it with --password-stdin"),
        (("add", "eve", "--password-stdin"), "short", "the password has fewer than 10 characters"),
        (("add", "eve", "--password-stdin"), "x" * 5000, "the password has more than 1024 characters"),
        (("add", "eve", "--no-password", "--password-stdin"), "", "exclude each other"),
        (("add", "eve", "--no-password", "--role", "root"), "", "'root' is no role; there are viewer, member, admin"),
        (("role", "ann", "boss"), "", "'boss' is no role"),
        (("role", "ann", "viewer"), "", "ann is the last admin; make another account an admin first"),
        (("disable", "ann"), "", "ann is the last admin"),
        (("disable", "nobody"), "", "there is no account 'nobody'; gpulse user list shows those there are"),
        (("password", "sso-user"), "", "signs in by https://sso.example"),
        (("link", "ann", "--expires", "8d"), "", "allowed is a second to seven days"),
        (("link", "ann", "--expires", "soon"), "", "is not a length of time"),
        (("link", "off"), "", "the account off is disabled"),
        (("connect", "ann"), "", "it is not said where the person signs in; give --issuer and --subject, or --proxy"),
        (("connect", "ann", "--issuer", "https://sso.example"), "", "it is not said where the person signs in"),
        (("connect", "ann", "--subject", "1", "--proxy"), "", "it is not said where the person signs in"),
        (("connect", "nobody", "--proxy"), "", "there is no account 'nobody'"),
        (
            ("connect", "ann", "--issuer", "https://sso.example", "--subject", ""),
            "",
            "the subject is no id of a person",
        ),
    ],
)
def test_mistakes_are_one_sentence(gpulse, accounts, arguments, stdin, words):
    async def people(directory):
        await directory.accounts.add("ann", "admin")
        await directory.accounts.upsert_external("https://sso.example", "1", "sso-user", "viewer")
        await directory.accounts.disable((await directory.accounts.add("off", "viewer")).id)

    accounts(people)
    done = gpulse("user", *arguments, stdin=stdin)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1), done.stderr
    assert words in done.stderr
    assert accounts(audited) == []


def asked(arguments, answers, home):
    """Runs a command in a terminal, and types an answer when it has asked; what the terminal showed, and the end."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*GPULSE, *arguments],
        env=env(HOME=str(home)),
        preexec_fn=lambda: os.login_tty(slave),  # noqa: PLW1509 - it needs a terminal of its own, and there are no threads
    )
    os.close(slave)
    shown, left, deadline = "", list(answers), time.monotonic() + PATIENCE_SECONDS
    try:
        while time.monotonic() < deadline:
            if not select.select([master], [], [], 0.2)[0]:
                continue
            try:
                some = os.read(master, 4096).decode()
            except OSError:
                # Its other end is closed.
                break
            shown += some
            if left and shown.rstrip(" ").endswith(":"):
                os.write(master, f"{left.pop(0)}\n".encode())
                shown += "\n"
        return shown, process.wait(timeout=PATIENCE_SECONDS)
    finally:
        os.close(master)
        process.kill()
        process.wait()


def test_two_that_are_not_the_same(accounts, data, tmp_path):
    shown, code = asked(("user", "add", "ann", "--data", str(data)), [PASSWORD, "something else"], tmp_path)
    assert (code, "the two are not the same" in shown) == (2, True)
    assert accounts(audited) == []


def test_a_password_is_asked_for_twice_and_not_shown(accounts, data, tmp_path):
    arguments = ("user", "add", "ann", "--role", "admin", "--data", str(data))
    shown, code = asked(arguments, [PASSWORD, PASSWORD], tmp_path)
    assert (code, "added ann as admin" in shown) == (0, True)
    assert "Password for ann" in shown
    assert PASSWORD not in shown
    assert accounts(signs_in("ann", PASSWORD)) == "ann"


def test_the_audit_log(gpulse, accounts):
    assert gpulse("audit").stdout == "nothing has been changed\n"

    async def notes(directory):
        for number in range(120):
            await directory.audit.note("ann", "10.0.0.7", "account.role", f"user{number}", role="admin", was=["a", "b"])

    accounts(notes)
    lines = gpulse("audit").stdout.splitlines()
    assert (len(lines), lines[0].split()) == (101, ["WHEN", "WHO", "FROM", "WAY", "ACTION", "TARGET", "DETAIL"])
    assert lines[-1].split()[2:] == [
        "ann",
        "10.0.0.7",
        "local",
        "account.role",
        "user119",
        "role=admin,",
        "was=a,",
        "b",
    ]
    told = [json.loads(line) for line in gpulse("audit", "--json", "--since", "1d").stdout.splitlines()]
    assert [one["target"] for one in told] == [f"user{number}" for number in range(120)]
    assert told[0]["detail"] == {"role": "admin", "was": ["a", "b"]}
    assert gpulse("audit", "--since", "2999-01-01").stdout == "nothing has been changed\n"
    assert len(gpulse("audit", "--json", "--since", "2020-01-01T12:00").stdout.splitlines()) == 120
    for wrong in ("soon", "2020-99-99", "-1d", ""):
        done = gpulse("audit", "--since", wrong)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
        assert "is no time; write 2h, 7d" in done.stderr


def test_more_than_a_thousand_entries(accounts, monkeypatch, capsys, data):
    from gpulse.cli import audit

    async def notes(directory):
        for number in range(7):
            await directory.audit.note("ann", "", "x.y", str(number))

    accounts(notes)
    monkeypatch.setattr(audit, "_AT_ONCE", 3)
    audit.audit(since="1d", as_json=True, config=None, data=data, width=None)
    assert [json.loads(line)["target"] for line in capsys.readouterr().out.splitlines()] == list("0123456")
