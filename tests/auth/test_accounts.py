"""Accounts: added, changed, disabled; by one process or several."""

import subprocess
import sys

import pytest

from gpulse.auth import changing
from gpulse.auth.noting import Actor
from gpulse.auth.roles import ROLES, at_least, role_of
from gpulse.errors import AccountError, SignInRefused
from tests.patience import PATIENCE_SECONDS

DISABLE = """
import asyncio, sys
from pathlib import Path
from gpulse.auth.directory import Directory
from gpulse.store import Records
directory = Directory(Records(Path(sys.argv[1]), sys.argv[3] or None))
asyncio.run(directory.accounts.disable(directory.accounts.by_name(sys.argv[2]).id))
"""


def refused(doing, work, kind=AccountError):
    with pytest.raises(kind) as caught:
        doing(work)
    return caught.value.status, caught.value.code


def test_roles_in_their_order():
    assert [[at_least(role, wanted) for wanted in ROLES] for role in (None, *ROLES)] == [
        [False, False, False],
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert role_of("member") == "member"
    with pytest.raises(AccountError, match=r"'root' is no role; there are viewer, member, admin"):
        role_of("root")


def test_added_and_found(directory, doing):
    made = doing(directory.accounts.add("Ann", "member", display="Ann Example"))
    assert directory.accounts.by_name("Ann") == directory.accounts.by_name("aNN") == made
    assert directory.accounts.by_id(made.id) == made
    assert (made.name, made.role, made.has_password) == ("Ann", "member", False)
    assert directory.accounts.by_name("bob") is None
    (view,) = directory.accounts.list()
    assert view == directory.accounts.view(made.id)
    assert (view.name, view.display, view.role, view.disabled) == ("Ann", "Ann Example", "member", False)


@pytest.mark.parametrize("name", ["ANN", "ann", "ＡＮＮ", "aNn"])
def test_no_two_names_differ_by_case_alone(directory, doing, name):
    doing(directory.accounts.add("Ann", "member"))
    assert refused(doing, directory.accounts.add(name, "member")) == (409, "name_taken")
    assert refused(doing, directory.accounts.upsert_external("sso", "7", name, "member")) == (409, "name_taken")
    assert len(directory.accounts.list()) == 1


def test_nor_when_another_process_added_one(directory, others, doing):
    doing(others.accounts.add("Straße", "viewer"))
    assert refused(doing, directory.accounts.add("STRASSE", "viewer")) == (409, "name_taken")


@pytest.mark.parametrize(
    "name", ["", " ", "a b", "a\n", "a\0", "x" * 65, "local:ann", "a/b", "-a", "a,b", "a'", "\u200b"]
)
def test_names_that_are_none(directory, doing, name):
    assert refused(doing, directory.accounts.add(name, "member")) == (400, "bad_name")
    assert refused(doing, directory.accounts.operator(name)) == (400, "bad_name")


@pytest.mark.parametrize("name", ["a", "ann.smith", "ann@example.org", "LAB\\ann", "svc$", "ünal", "x" * 64, "_apt"])
def test_names_as_nodes_have_them(directory, doing, name):
    assert doing(directory.accounts.add(name, "member")).name == name


def test_the_last_admin_stays(directory, doing, ann):
    assert refused(doing, directory.accounts.disable(ann.id)) == (409, "last_admin")
    assert refused(doing, directory.accounts.set_role(ann.id, "member")) == (409, "last_admin")
    bob = doing(directory.accounts.add("bob", "admin"))
    doing(directory.accounts.disable(bob.id))
    # One who is disabled is nobody's help.
    assert refused(doing, directory.accounts.disable(ann.id)) == (409, "last_admin")
    doing(directory.accounts.set_role(bob.id, "viewer"))
    doing(directory.accounts.enable(bob.id))
    doing(directory.accounts.set_role(bob.id, "admin"))
    assert doing(directory.accounts.set_role(ann.id, "member")).role == "member"
    assert refused(doing, directory.accounts.disable(bob.id)) == (409, "last_admin")


def test_two_processes_do_not_take_the_last_two_admins(directory, others, doing, ann):
    bob = doing(directory.accounts.add("bob", "admin"))
    doing(others.refresh())
    doing(directory.accounts.disable(ann.id))
    assert refused(doing, others.accounts.disable(bob.id)) == (409, "last_admin")


def test_a_role_counts_at_once_for_what_is_open(directory, doing, bob):
    identity = directory.sessions.check(*doing(directory.sessions.begin(bob.id, "", "")))
    key = doing(directory.keys.create(bob.id, "x", ["read", "admin"]))
    assert (identity.role, directory.keys.check(key).role) == ("member", "member")
    doing(directory.accounts.set_role(bob.id, "admin"))
    assert (directory.current(identity).role, directory.keys.check(key).role) == ("admin", "admin")


def test_what_there_is_not(directory, doing):
    for work in (
        directory.accounts.set_role("0" * 12, "admin"),
        directory.accounts.set_display("0" * 12, "x"),
        directory.accounts.disable("0" * 12),
        directory.accounts.enable("0" * 12),
        directory.accounts.set_password("0" * 12, "correct horse"),
        directory.sessions.begin("0" * 12, "", ""),
        directory.keys.create("0" * 12, "x", ["read"]),
        directory.links.make("0" * 12),
    ):
        assert refused(doing, work) == (404, "account_unknown")
    with pytest.raises(AccountError):
        directory.accounts.view("0" * 12)


def test_disabled_means_out_by_every_way(directory, doing, bob):
    begun = doing(directory.sessions.begin(bob.id, "10.0.0.1", "Firefox"))
    key = doing(directory.keys.create(bob.id, "script", ["read"]))
    link = doing(directory.links.make(bob.id))
    identity = directory.sessions.check(*begun)
    doing(directory.accounts.disable(bob.id))
    for enabled in (False, True):
        if enabled:
            doing(directory.accounts.enable(bob.id))
        assert directory.sessions.check(*begun) is None
        assert directory.current(identity) is None
        with pytest.raises(SignInRefused, match="was revoked"):
            directory.keys.check(key)
        assert refused(doing, directory.links.redeem(link), SignInRefused) == (401, "link_bad")
    assert doing(directory.accounts.check_password("bob", "battery staple")).id == bob.id


def test_a_disabled_account_gets_nothing_new(directory, others, doing, bob):
    doing(others.refresh())
    doing(directory.accounts.disable(bob.id))
    # The other process has not looked yet.
    assert others.accounts.by_name("bob").live
    for work in (
        others.sessions.begin(bob.id, "", ""),
        others.keys.create(bob.id, "x", ["read"]),
        others.links.make(bob.id),
    ):
        assert refused(doing, work, SignInRefused) == (403, "account_disabled")
    assert refused(doing, directory.accounts.check_password("bob", "battery staple"), SignInRefused) == (
        403,
        "account_disabled",
    )
    assert refused(doing, directory.accounts.check_password("bob", "wrong"), SignInRefused) == (401, "wrong_password")
    assert directory.identity_of(bob.id, "proxy") is None


def test_another_process_disables_and_one_look_later_all_is_over(folder, records_url, directory, doing, bob):
    begun = doing(directory.sessions.begin(bob.id, "", ""))
    key = doing(directory.keys.create(bob.id, "x", ["read"]))
    identities = [directory.sessions.check(*begun), directory.keys.check(key), directory.identity_of(bob.id, "proxy")]
    assert [directory.current(one) for one in identities] == identities
    subprocess.run(
        [sys.executable, "-c", DISABLE, folder, "bob", records_url or ""], check=True, timeout=PATIENCE_SECONDS
    )
    assert doing(directory.refresh()) == ""
    assert directory.sessions.check(*begun) is None
    with pytest.raises(SignInRefused):
        directory.keys.check(key)
    assert [directory.current(one) for one in identities] == [None] * 3


def test_a_role_set_by_another_process(directory, others, doing, bob):
    identity = directory.sessions.check(*doing(directory.sessions.begin(bob.id, "", "")))
    doing(others.refresh())
    doing(others.accounts.set_role(bob.id, "viewer"))
    doing(others.accounts.set_display(bob.id, "Bob"))
    assert directory.current(identity).role == "member"
    doing(directory.refresh())
    assert directory.current(identity).role == "viewer"
    assert directory.accounts.by_name("bob").display == "Bob"


def test_writing_oneself_hides_nothing_of_others(directory, others, doing):
    doing(directory.accounts.add("ann", "admin"))
    doing(others.accounts.add("bob", "admin"))
    doing(others.refresh())
    doing(directory.refresh())
    assert (
        {one.name for one in others.accounts.list()}
        == {one.name for one in directory.accounts.list()}
        == {"ann", "bob"}
    )


@pytest.mark.usefixtures("ann")
def test_who_signs_in_elsewhere(directory, doing):
    first = doing(directory.accounts.upsert_external("https://sso", "42", "eve", "member", "Eve"))
    assert directory.accounts.by_subject("https://sso", "42") == first
    assert directory.accounts.by_subject("https://other", "42") is None
    # What she is called there now must not make her somebody else here.
    again = doing(directory.accounts.upsert_external("https://sso", "42", "ann", "viewer", "Eve E."))
    assert (again.id, again.name, again.role, again.display) == (first.id, "eve", "viewer", "Eve E.")
    assert refused(doing, directory.accounts.upsert_external("https://sso", "43", "eve", "member")) == (
        409,
        "name_taken",
    )
    assert refused(doing, directory.accounts.upsert_external("https://sso", "43", "Ann", "member")) == (
        409,
        "name_taken",
    )
    assert refused(doing, directory.accounts.set_password(first.id, "correct horse")) == (409, "signs_in_elsewhere")
    doing(directory.accounts.disable(first.id))
    work = directory.accounts.upsert_external("https://sso", "42", "eve", "admin")
    assert refused(doing, work, SignInRefused) == (403, "account_disabled")


def test_who_signs_in_elsewhere_again_costs_no_write(directory, records, doing):
    doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member"))
    records.close()
    assert doing(directory.accounts.upsert_external("proxy", "eve", "eve", "member")).name == "eve"


@pytest.mark.parametrize("subject", ["", "x" * 256, "\ud800", "a\n"])
def test_subjects_that_are_none(directory, doing, subject):
    assert refused(doing, directory.accounts.upsert_external("sso", subject, "eve", "member")) == (400, "bad_subject")


def test_a_role_taken_elsewhere_is_taken_also_from_the_last_admin(directory, doing):
    doing(directory.accounts.upsert_external("https://sso", "42", "eve", "admin"))
    assert doing(directory.accounts.upsert_external("https://sso", "42", "eve", "viewer")).role == "viewer"


def test_made_by_another_process_in_between(directory, others, doing):
    doing(others.accounts.upsert_external("proxy", "eve", "eve", "member"))
    assert doing(directory.accounts.upsert_external("proxy", "eve", "eve", "viewer")).role == "viewer"
    assert len(directory.accounts.list()) == 1


def test_who_runs_the_hub_is_an_admin_unless_told_otherwise(directory, doing):
    first = doing(directory.accounts.operator("ann"))
    assert (first.name, first.role, first.has_password) == ("ann", "admin", False)
    assert doing(directory.accounts.operator("ann")) == first
    doing(directory.accounts.add("root", "viewer"))
    assert doing(directory.accounts.operator("root")).role == "viewer"


def test_the_list(directory, doing, clock, bob):
    doing(directory.accounts.add("eve10", "viewer"))
    doing(directory.accounts.add("eve9", "viewer"))
    doing(directory.sessions.begin(bob.id, "", ""))
    doing(directory.keys.create(bob.id, "a", ["read"], clock.now + 10))
    doing(directory.keys.create(bob.id, "b", ["read"]))
    clock.now += 10
    doing(directory.accounts.disable(doing(directory.accounts.add("al", "admin")).id))
    listed = directory.accounts.list()
    assert [one.name for one in listed] == ["ann", "bob", "eve9", "eve10", "al"]
    assert (listed[1].sessions, listed[1].keys, listed[1].signed_in_at) == (1, 1, clock.now - 10)
    assert listed[4].disabled


def test_when_the_database_cannot_be_asked(directory, records, doing, bob):
    begun = doing(directory.sessions.begin(bob.id, "", ""))
    records.close()
    assert "is closed; accounts are as they were last read" in doing(directory.refresh())
    assert directory.sessions.check(*begun).name == "bob"


def test_the_hub_has_an_id(directory, others):
    assert directory.hub_id == others.hub_id
    assert len(directory.hub_id) == 32
    assert int(directory.hub_id, 16)


def test_who_is_connected_anew_is_no_longer_whom_they_were_connected_to(directory, others, doing):
    eve = doing(directory.accounts.upsert_external("https://old", "1", "eve", "member"))
    doing(others.refresh())
    doing(directory.accounts.connect(eve.id, "https://new", "2"))
    doing(others.refresh())
    for one in (directory, others):
        assert one.accounts.by_subject("https://new", "2").id == eve.id
        assert one.accounts.by_subject("https://old", "1") is None
        work = one.accounts.upsert_external("https://old", "1", "eve", "admin")
        assert refused(doing, work) == (409, "name_taken")


@pytest.mark.parametrize("broken", ["set_role", "set_password", "disable"])
def test_a_change_is_done_as_a_whole_or_not_at_all(directory, others, doing, bob, monkeypatch, broken):
    """With its entries in the audit log; whichever part fails in the middle."""
    session, by = doing(directory.sessions.begin(bob.id, "", "")), Actor("ann", "session", "10.0.0.8")
    entries = doing(directory.audit.entries())
    wanted = changing.Change(role="viewer", display="Robert", password="another password", disabled=True)  # noqa: S106 - that of a test
    real = getattr(changing, broken)

    def half(connection, *rest, **named):
        real(connection, *rest, **named)
        raise AccountError(409, "broken", "it broke", "")

    monkeypatch.setattr(changing, broken, half)
    assert refused(doing, directory.accounts.change(bob.id, wanted, by=by)) == (409, "broken")
    monkeypatch.undo()
    doing(others.refresh())
    for seen in (directory, others):
        found = seen.accounts.by_id(bob.id)
        assert (found.role, found.display, found.live) == ("member", "", True)
        assert doing(seen.accounts.check_password("bob", "battery staple")).id == bob.id
        assert seen.sessions.check(*session).name == "bob"
    assert doing(directory.audit.entries()) == entries
    doing(directory.accounts.change(bob.id, wanted, by=by))
    doing(others.refresh())
    for seen in (directory, others):
        found = seen.accounts.by_id(bob.id)
        assert (found.role, found.display, found.live) == ("viewer", "Robert", False)
        assert seen.sessions.check(*session) is None
    done = [one.action for one in doing(directory.audit.entries())[: -len(entries)]]
    assert done == ["account.disable", "account.password", "account.role", "account.display"]
