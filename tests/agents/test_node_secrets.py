"""What nodes are given: kept where it is good, new where it is not."""

from pathlib import Path

import pytest

from gpulse.agents.node_secrets import PullSecrets, push_secrets
from gpulse.auth.noting import Actor
from gpulse.auth.tokens import Tokens
from gpulse.errors import AgentError
from gpulse.store import Records, audit

BY = Actor("local: me", "local")


def holders(folder):
    with Records(folder) as records:
        return Tokens(records).nodes()


def test_a_node_that_has_a_good_token_keeps_it(tmp_path):
    with push_secrets(tmp_path, None, BY) as secrets:
        first = secrets.files("gpu01", None)
        identity = first["token"].split("_")[1]
    with push_secrets(tmp_path, None, BY) as secrets:
        assert secrets.files("gpu01", identity) == {"upgrade-key": first["upgrade-key"]}
        # The token of another node is none of its own.
        other = secrets.files("gpu02", identity)
        assert other["upgrade-key"] != first["upgrade-key"]
        assert other["token"] != first["token"]
    assert holders(tmp_path) == {"gpu01", "gpu02"}


def test_a_token_that_was_lost_is_replaced(tmp_path):
    with push_secrets(tmp_path, None, BY) as secrets:
        first = secrets.files("gpu01", None)["token"]
        second = secrets.files("gpu01", None)["token"]
    assert first != second
    with Records(tmp_path) as records:
        tokens = Tokens(records)
        assert tokens.check(second).node == "gpu01"
        with pytest.raises(Exception, match="replaced"):
            tokens.check(first)


def test_only_the_removed_nodes_own_token_is_revoked(tmp_path):
    with push_secrets(tmp_path, None, BY) as secrets:
        one, two = (secrets.files(node, None)["token"].split("_")[1] for node in ("gpu01", "gpu02"))
    with push_secrets(tmp_path, None, BY) as secrets:
        secrets.forget("gpu01", two)
        secrets.forget("gpu01", None)
        secrets.forget("gpu01", "000000000000")
        assert holders(tmp_path) == {"gpu01", "gpu02"}
        secrets.forget("gpu01", one)
    assert holders(tmp_path) == {"gpu02"}
    with Records(tmp_path) as records:
        entries = records.read(lambda one: audit.newest(one, None, None, 9)).result()[::-1]
    assert {one.who for one in entries} == {BY.name}
    assert [(one.action, one.target) for one in entries] == [
        ("token.make", "gpu01"),
        ("token.make", "gpu02"),
        ("token.revoke", "gpu01"),
    ]


def test_the_tokens_of_nodes_that_are_asked(tmp_path):
    folder = tmp_path / "data"
    first = PullSecrets(folder).files("gpu01", None)
    assert len(first["token"].strip()) == 48
    assert PullSecrets(folder).files("gpu01", None) == first
    assert PullSecrets(folder).files("gpu02", None) != first
    file = Path(PullSecrets(folder).token_file.replace("{name}", "gpu01"))
    assert file.read_text() == first["token"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").touch()
    with pytest.raises(AgentError, match="cannot be read or made"):
        PullSecrets(tmp_path / "file").files("gpu01", None)
