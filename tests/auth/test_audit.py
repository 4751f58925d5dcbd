"""The audit log: what is written down, and what never is."""

import msgspec
import pytest

from gpulse.auth import secret_text
from gpulse.auth.identity import Identity

NOBODY = Identity(None, None, None, "anonymous", frozenset())


def test_who_did_what_when_and_from_where(directory, doing, clock, bob):
    bobs = directory.sessions.check(*doing(directory.sessions.begin(bob.id, "", "")))
    doing(directory.audit.note(bobs, "10.0.0.7", "key.create", "backup", scopes=["read"], expires_at=None))
    clock.now += 1
    doing(directory.audit.note("local: root", "", "account.role", "bob", role_before="member", role="admin"))
    doing(directory.audit.note(NOBODY, "10.0.0.9", "session.refused"))
    last, role, key, *earlier = doing(directory.audit.entries())
    assert msgspec.to_builtins(key) == {
        "id": len(earlier) + 1,
        "at": clock.now - 1,
        "who": "bob",
        "way": "session",
        "address": "10.0.0.7",
        "action": "key.create",
        "target": "backup",
        "detail": {"scopes": ["read"], "expires_at": None},
    }
    assert (role.who, role.way, role.detail) == ("local: root", "local", {"role_before": "member", "role": "admin"})
    assert (last.who, last.way, last.target) == ("anonymous", "anonymous", "")


def test_pages_and_since(directory, others, doing, clock):
    for number in range(10):
        clock.now += 1
        doing((directory, others)[number % 2].audit.note("local: me", "", "x.y", str(number)))

    def told(**asked):
        return [one.target for one in doing(directory.audit.entries(**asked))]

    assert told(limit=3) == ["9", "8", "7"]
    third = doing(directory.audit.entries(limit=3))[-1].id
    assert told(limit=3, before=third) == ["6", "5", "4"]
    assert told(since=clock.now - 2) == ["9", "8", "7"]
    assert told(since=clock.now - 2, before=third) == []


# What is in the file is looked at.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("prefix", ["gpn", "gpj", "gpk", "gps", "gpl"])
def test_never_a_secret(directory, folder, doing, prefix):
    text = secret_text.make(prefix)[0]
    secret = text.split("_")[2]
    doing(directory.audit.note(f"x {text}", text, text, f"z{text}z", some=text, many=[text], **{text: 1}))
    (entry,) = doing(directory.audit.entries())
    assert secret not in repr(entry)
    assert entry.target == f"z{prefix}_{text.split('_')[1]}_…z"
    assert secret.encode() not in b"".join(path.read_bytes() for path in folder.iterdir())


def test_one_line_that_fits(directory, doing):
    nasty = 'a\n{"who":"root"}\x1b[2J\u202e' + "x" * 1000
    doing(directory.audit.note(nasty, nasty, nasty, nasty, some=nasty, many=[nasty] * 500, number=1.5, yes=True))
    (entry,) = doing(directory.audit.entries())
    assert len(msgspec.json.encode(entry)) < 100_000
    for text in (entry.who, entry.address, entry.action, entry.target, entry.detail["some"], *entry.detail["many"]):
        assert text.isprintable()
        assert len(text) == 200
    assert (entry.detail["number"], entry.detail["yes"], len(entry.detail["many"])) == (1.5, True, 100)
