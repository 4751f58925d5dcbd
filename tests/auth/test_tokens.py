"""Tokens: made, checked, traded and revoked, by one process or several."""

import asyncio
import hmac
import os
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.auth import token_text
from gpulse.auth.tokens import Changes, JoinToken, NodeToken, Tokens
from gpulse.errors import GpulseError, HostsError, StoreError, TokenError, TokenRefused
from gpulse.store import Records
from tests.patience import PATIENCE_SECONDS

NONE = frozenset()
NOTHING = Changes(NONE, NONE, NONE)
# Makes tokens for ever, and tells of each when it is made.
MAKER = """
import sys
from pathlib import Path
from gpulse.auth.tokens import Tokens
from gpulse.store import Records
tokens = Tokens(Records(Path(sys.argv[1]), sys.argv[4] or None))
for number in range(int(sys.argv[3])):
    print(tokens.create_node(f"{sys.argv[2]}{number}"), flush=True)
"""


class Clock:
    """Time goes on when the test says so."""

    def __init__(self):
        self.now = 1_800_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def records(tmp_path, records_url):
    with Records(tmp_path, records_url) as opened:
        yield opened


@pytest.fixture
def tokens(records, clock):
    return Tokens(records, clock)


@pytest.fixture
def others(tmp_path, records_url, clock):
    """The same tokens as another process sees them."""
    with Records(tmp_path, records_url) as opened:
        yield Tokens(opened, clock)


def refused(work, *arguments):
    with pytest.raises(TokenRefused) as caught:
        result = work(*arguments)
        if asyncio.iscoroutine(result):
            asyncio.run(result)
    return caught.value.status, caught.value.code


def refresh(tokens):
    return asyncio.run(tokens.refresh())


def test_a_node_is_known_by_its_token(tokens):
    text = tokens.create_node("gpu01")
    assert tokens.check(text) == NodeToken(text.split("_")[1], "gpu01")
    assert tokens.nodes() == {"gpu01"}


def test_what_is_refused_and_why(tokens, clock):
    text = tokens.create_node("gpu01", expires_at=clock.now + 10)
    assert refused(tokens.check, "") == (401, "token_missing")
    assert refused(tokens.check, "secret") == (401, "token_malformed")
    assert refused(tokens.check, text + "0") == (401, "token_malformed")
    assert refused(tokens.check, token_text.make("node")[0]) == (401, "token_unknown")
    assert refused(tokens.check, text[:-4] + ("0000" if text[-4:] != "0000" else "1111")) == (401, "token_unknown")
    assert refused(tokens.check, text.replace("gpn", "gpj")) == (401, "token_unknown")
    clock.now += 10
    assert refused(tokens.check, text) == (401, "token_expired")
    other = tokens.create_node("gpu02")
    tokens.revoke(["gpu02"])
    assert refused(tokens.check, other) == (401, "token_revoked")


def test_refusals_never_repeat_a_secret(tokens, clock):
    text = tokens.create_node("gpu01", expires_at=clock.now + 1)
    clock.now += 1
    for wrong in (text, text.upper(), text + "x", text[:-1], token_text.make("join")[0]):
        with pytest.raises(TokenRefused) as caught:
            tokens.check(wrong)
        assert text.split("_")[2][:20] not in f"{caught.value.message} {caught.value.detail}".lower()


def test_secrets_are_compared_in_constant_time(tokens, monkeypatch):
    asked = []
    real = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, two: asked.append((one, two)) or real(one, two))
    text = tokens.create_node("gpu01")
    tokens.check(text)
    refused(tokens.check, token_text.make("node")[0])
    assert [(len(one), len(two)) for one, two in asked] == [(32, 32)] * 2


# What is in the file is looked at.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
def test_no_secret_reaches_the_disk(tmp_path, tokens, clock):
    texts = [tokens.create_node("gpu01"), tokens.create_join("n[1-3]", clock.now + 10)]
    texts.append(asyncio.run(tokens.trade(tokens.check(texts[1]), "n2")))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"gpu01" in stored
    for text in texts:
        secret = text.split("_")[2]
        assert secret.encode() not in stored
        assert bytes.fromhex(secret) not in stored


def test_one_live_token_for_a_node(tokens):
    old = tokens.create_node("gpu01")
    with pytest.raises(TokenError, match=r"gpu01 has a token already; --replace"):
        tokens.create_nodes(["gpu00", "gpu01"])
    assert tokens.nodes() == {"gpu01"}
    new = tokens.create_node("gpu01", replace=True)
    assert refused(tokens.check, old) == (401, "token_revoked")
    assert tokens.check(new).node == "gpu01"
    assert sorted(one.state for one in tokens.listing()) == ["live", "replaced"]


def test_an_expired_token_is_in_nobodys_way(tokens, clock):
    tokens.create_node("gpu01", expires_at=clock.now + 5)
    clock.now += 5
    assert tokens.check(tokens.create_node("gpu01")).node == "gpu01"
    assert sorted(one.state for one in tokens.listing()) == ["expired", "live"]


@pytest.mark.parametrize("name", ["me@gpu01", "gpu01:22", "gpu[1-2]", "a b", "../x", "", "gpu 1", "@x:y"])
def test_names_that_are_none(tokens, name):
    with pytest.raises((TokenError, HostsError)):
        tokens.create_node(name)
    assert tokens.listing() == []


def test_a_join_token_is_traded_once_a_node(tokens, clock):
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    assert isinstance(join, JoinToken)
    own = asyncio.run(tokens.trade(join, "gpu2"))
    assert tokens.check(own).node == "gpu2"
    assert refused(tokens.trade, join, "gpu2") == (409, "already_joined")
    assert refused(tokens.trade, join, "gpu4") == (403, "not_in_set")
    assert refused(tokens.trade, join, "gpu[1-3]") == (403, "not_in_set")
    assert refused(tokens.trade, join, "") == (403, "not_in_set")
    assert tokens.nodes() == {"gpu2"}


def test_a_token_that_never_arrived_is_traded_again(tokens, clock):
    """The answer may be lost on its way; a node that came with its token has it."""
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    lost = asyncio.run(tokens.trade(join, "gpu2"))
    own = asyncio.run(tokens.trade(join, "gpu2"))
    assert refused(tokens.check, lost) == (401, "token_revoked")
    tokens.check(own)
    assert refused(tokens.trade, join, "gpu2") == (409, "already_joined")


def test_that_a_token_was_used_is_known_after_a_restart(tokens, others, clock):
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    tokens.check(asyncio.run(tokens.trade(join, "gpu2")))
    refresh(tokens)
    refresh(others)
    assert refused(others.trade, join, "gpu2") == (409, "already_joined")


def test_a_token_made_by_hand_is_not_taken_over(tokens, clock):
    tokens.create_node("gpu1")
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    assert refused(tokens.trade, join, "gpu1") == (409, "already_joined")


def test_joining_with_replace(tokens, clock):
    old = tokens.create_node("gpu1")
    tokens.check(old)
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60, replace=True))
    refresh(tokens)
    new = asyncio.run(tokens.trade(join, "gpu1"))
    assert refused(tokens.check, old) == (401, "token_revoked")
    assert tokens.check(new).node == "gpu1"
    assert refresh(tokens) == Changes(NONE, {"gpu1"}, NONE)


def test_two_machines_with_one_name_at_once(tokens, clock):
    join = tokens.check(tokens.create_join("gpu1", clock.now + 60))

    async def both():
        return await asyncio.gather(*(tokens.trade(join, "gpu1") for _ in range(2)), return_exceptions=True)

    first, second = asyncio.run(both())
    assert tokens.check(first).node == "gpu1"
    assert (second.status, second.code) == (409, "already_joined")


def test_a_join_token_that_ended_after_it_was_checked(tokens, others, clock):
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    refresh(others)
    others.revoke([join.id])
    assert refused(tokens.trade, join, "gpu1") == (401, "token_revoked")
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    clock.now += 60
    assert refused(tokens.trade, join, "gpu1") == (401, "token_expired")
    assert tokens.nodes() == NONE


@pytest.mark.parametrize("replace", [False, True])
def test_who_was_revoked_does_not_come_back_by_an_old_join_token(tokens, clock, replace):
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60, replace))
    asyncio.run(tokens.trade(join, "gpu1"))
    tokens.revoke(["gpu1"])
    assert refused(tokens.trade, join, "gpu1") == (403, "not_in_set")
    assert asyncio.run(tokens.trade(join, "gpu2"))
    later = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    assert asyncio.run(tokens.trade(later, "gpu1"))


@pytest.mark.parametrize("text", ["me@gpu[1-3]", "gpu[1-3]:22", "gpu[1-300000]", "gpu[", ""])
def test_sets_that_are_none(tokens, clock, text):
    with pytest.raises(GpulseError):
        tokens.create_join(text, clock.now + 60)


def test_groups_mean_what_they_meant(tmp_path, monkeypatch, tokens, clock):
    folder = tmp_path / "clustershell"
    folder.mkdir()
    (folder / "groups.conf").write_text("[Main]\ndefault: site\n[site]\nmap: echo n[1-2]\n")
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(folder))
    join = tokens.check(tokens.create_join("@rack1", clock.now + 60))
    (folder / "groups.conf").write_text("broken")
    assert asyncio.run(tokens.trade(join, "n2"))
    assert refused(tokens.trade, join, "n3") == (403, "not_in_set")


def test_a_wave(tokens, records, clock, monkeypatch):
    """12,500 nodes join at once: they share transactions, each gets its own."""
    names = [f"gpu{number:05}" for number in range(1, 12501)]
    join = tokens.check(tokens.create_join("gpu[00001-12500]", clock.now + 60))

    async def wave():
        return await asyncio.gather(*(tokens.trade(join, name) for name in names))

    writes = []
    write = records.write
    monkeypatch.setattr(records, "write", lambda work: writes.append(work) or write(work))
    # CPU time: others on this machine do not count.
    began = time.process_time()
    got = asyncio.run(wave())
    assert 12500 / (time.process_time() - began) > 500
    assert 12500 / len(writes) > 500
    assert [tokens.check(text).node for text in got] == names
    assert refresh(tokens).added == set(names)


# By a way in which SQLite alone fails.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
def test_trouble_is_told_to_everybody_who_asked(tokens, records, clock):
    join = tokens.check(tokens.create_join("gpu[1-3]", clock.now + 60))
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = ON")).result()

    async def wave():
        return await asyncio.gather(*(tokens.trade(join, f"gpu{one}") for one in (1, 2)), return_exceptions=True)

    assert [type(answer) for answer in asyncio.run(wave())] == [StoreError, StoreError]
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = OFF")).result()
    assert asyncio.run(tokens.trade(join, "gpu1"))


def test_another_process_is_noticed_at_the_next_look(tokens, others):
    assert refresh(others) == NOTHING
    old = tokens.create_node("gpu1")
    assert refresh(others) == Changes({"gpu1"}, NONE, NONE)
    token = others.check(old)
    new = tokens.create_node("gpu1", replace=True)
    assert others.live(token)
    assert refresh(others) == Changes(NONE, {"gpu1"}, NONE)
    assert not others.live(token)
    assert refused(others.check, old) == (401, "token_revoked")
    others.check(new)
    tokens.revoke(["gpu1"])
    assert refresh(others) == Changes(NONE, NONE, {"gpu1"})
    assert others.nodes() == NONE
    assert refused(others.check, new) == (401, "token_revoked")
    assert refresh(others) == NOTHING


def test_what_came_and_went_between_two_looks_is_no_change(tokens, others):
    tokens.create_node("gpu1")
    tokens.revoke(["gpu1"])
    assert refresh(others) == NOTHING
    assert refresh(tokens) == NOTHING


def test_writing_oneself_hides_nothing_of_others(tokens, others):
    tokens.create_node("gpu1")
    others.create_node("gpu2")
    assert refresh(others).added == {"gpu1", "gpu2"}


def test_a_token_at_its_end_is_told(tokens, clock):
    token = tokens.check(tokens.create_node("gpu1", expires_at=clock.now + 5))
    assert refresh(tokens).added == {"gpu1"}
    clock.now += 5
    assert not tokens.live(token)
    assert refresh(tokens) == Changes(NONE, NONE, NONE, {"gpu1"})
    assert tokens.nodes() == NONE


# By a way in which SQLite alone fails.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
def test_a_token_comes_to_its_end_whatever_the_database_does(tokens, records, clock):
    text = tokens.create_node("gpu1", expires_at=clock.now + 5)
    refresh(tokens)
    tokens.check(text)
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = ON")).result()
    clock.now += 5
    changes = refresh(tokens)
    assert changes.expired == {"gpu1"}
    assert "may not be written" in changes.trouble
    assert tokens.nodes() == NONE
    records.read(lambda one: one.exec_driver_sql("PRAGMA query_only = OFF")).result()
    assert refresh(tokens) == NOTHING
    assert tokens.listing()[0].used_at == clock.now - 5
    records.close()
    assert "is closed" in refresh(tokens).trouble


def test_expired_tokens_are_not_live_after_a_restart(tokens, records, clock):
    tokens.create_node("gpu1", expires_at=clock.now + 5)
    clock.now += 5
    again = Tokens(records, clock)
    assert again.nodes() == NONE
    assert refresh(again) == NOTHING


def test_a_token_made_this_moment_is_admitted(tokens, others):
    text = tokens.create_node("gpu1")
    assert refused(others.check, text) == (401, "token_unknown")
    assert asyncio.run(others.admit(text)).node == "gpu1"
    assert refresh(others).added == {"gpu1"}
    assert refused(others.admit, token_text.make("node")[0]) == (401, "token_unknown")
    assert refused(others.admit, "x") == (401, "token_malformed")


def test_a_token_nobody_knows_is_not_live(tokens):
    assert not tokens.live(NodeToken("0" * 12, "gpu1"))


def test_revoking_by_what_people_call_it(tokens, clock):
    tokens.create_nodes([f"gpu{number}" for number in range(1, 7)])
    join = tokens.check(tokens.create_join("gpu[7-9]", clock.now + 60))
    asyncio.run(tokens.trade(join, "gpu7"))
    by_name = {one.nodes: one.id for one in tokens.listing()}
    assert [one.nodes for one in tokens.revoke(["gpu1"])] == ["gpu1"]
    assert [one.nodes for one in tokens.revoke([by_name["gpu2"]])] == ["gpu2"]
    assert sorted(one.nodes for one in tokens.revoke(["gpu[2-4]"])) == ["gpu3", "gpu4"]
    assert [one.nodes for one in tokens.revoke(["gpu[7-9]"])] == ["gpu[7-9]"]
    assert tokens.nodes() == {"gpu5", "gpu6", "gpu7"}
    assert [one.nodes for one in tokens.revoke([join.id], joined=True)] == ["gpu7"]
    for words, told in (
        (["gpu5", "gpu1"], "gpu1 has no token"),
        (["gpu5", join.id], "is revoked already"),
        (["0" * 12], "has no token"),
        (["me@gpu5"], "without a user"),
    ):
        with pytest.raises(TokenError, match=told):
            tokens.revoke(words)
    assert tokens.nodes() == {"gpu5", "gpu6"}


def test_a_join_token_for_one_node_goes_with_the_nodes_own(tokens, clock):
    join = tokens.check(tokens.create_join("gpu1", clock.now + 60))
    asyncio.run(tokens.trade(join, "gpu1"))
    assert sorted(one.kind for one in tokens.revoke(["gpu1"])) == ["join", "node"]


def test_a_name_that_only_looks_like_a_number(tokens):
    tokens.create_nodes(["²", "gpu10", "gpu2", "①"])
    assert [one.nodes for one in tokens.listing()] == ["gpu2", "gpu10", "²", "①"]
    assert [one.nodes for one in tokens.revoke(["²"])] == ["²"]


def test_the_list(tokens, clock):
    tokens.create_nodes(["gpu10", "gpu9"])
    join = tokens.check(tokens.create_join("n[1-9]", clock.now + 60))
    asyncio.run(tokens.trade(join, "n5"))
    listed = tokens.listing()
    assert [(one.kind, one.nodes) for one in listed] == [
        ("join", "n[1-9]"), ("node", "gpu9"), ("node", "gpu10"), ("node", "n5"),
    ]  # fmt: skip
    assert (listed[0].joined, listed[0].expires_at, listed[3].joined_by) == (1, clock.now + 60, join.id)


def test_two_processes_make_tokens_at_once(tmp_path, records_url, records):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, tmp_path, letter, "40", records_url or ""], stdout=subprocess.PIPE, text=True
        )
        for letter in "ab"
    ]
    texts = [text for process in started for text in process.communicate(timeout=PATIENCE_SECONDS)[0].split()]
    tokens = Tokens(records)
    assert {tokens.check(text).node for text in texts} == {f"{one}{number}" for one in "ab" for number in range(40)}
    revisions = [row.revision for row in tokens._known.values()]
    assert len(set(revisions)) == 80


def test_a_token_that_was_told_outlives_kill_9(tmp_path, records_url, records):
    with subprocess.Popen(
        [sys.executable, "-c", MAKER, tmp_path, "n", "100000", records_url or ""], stdout=subprocess.PIPE, text=True
    ) as process:
        told = [process.stdout.readline().strip() for _ in range(20)]
        os.kill(process.pid, signal.SIGKILL)
        told += process.stdout.read().split("\n")[:-1]
    tokens = Tokens(records)
    assert [tokens.check(text).node for text in told] == [f"n{number}" for number in range(len(told))]
    tokens.create_node("afterwards")


@given(st.sampled_from(["node", "join"]))
def test_a_text_is_read_as_it_was_made(kind):
    text, parts = token_text.make(kind)
    assert token_text.read(text) == parts
    assert text.startswith({"node": "gpn_", "join": "gpj_"}[kind])


@given(st.one_of(st.text(), st.from_regex(r"gp[nj]_[0-9a-fA-F]{10,14}_[0-9a-f]{46,50}\n?")))
@example("gpn_" + "0" * 12 + "_" + "0" * 48 + "\n")
@example("gpn_" + "٠" * 12 + "_" + "0" * 48)
def test_any_text_is_a_token_or_refused(text):
    try:
        parts = token_text.read(text)
    except TokenRefused as error:
        assert (error.status, error.code) == (401, "token_malformed" if text else "token_missing")
    else:
        assert (text[:4], text[4:16], len(text)) == ("gpn_" if parts.kind == "node" else "gpj_", parts.id, 65)
        assert text.isascii()
