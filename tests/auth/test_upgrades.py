"""The keys by which agents trust the hub's newer agent."""

import hmac
import stat
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest

from gpulse.auth.upgrades import Upgrades
from gpulse.errors import StoreError


def test_made_once_and_for_its_owner_alone(tmp_path):
    folder = tmp_path / "data"
    key = Upgrades(folder).upgrade_key("gpu01")
    file = folder / "agent.key"
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(folder.stat().st_mode)) == (0o600, 0o700)
    assert len(file.read_bytes()) == 32
    assert Upgrades(folder).upgrade_key("gpu01") == key
    assert list(folder.iterdir()) == [file]


def test_every_node_has_its_own(tmp_path):
    upgrades = Upgrades(tmp_path)
    master = (tmp_path / "agent.key").read_bytes()
    assert upgrades.upgrade_key("gpu01") == hmac.new(master, b"upgrade:gpu01", sha256).hexdigest()
    assert upgrades.upgrade_key("gpu01") != upgrades.upgrade_key("gpu02")


def test_a_signature_is_what_the_agent_computes(tmp_path):
    upgrades = Upgrades(tmp_path)
    on_the_node = (upgrades.upgrade_key("gpu01") + "\n").strip().encode()
    assert upgrades.sign("gpu01", b"zip") == hmac.new(on_the_node, b"zip", sha256).hexdigest()
    assert upgrades.sign("gpu02", b"zip") != upgrades.sign("gpu01", b"zip")


def test_of_many_who_make_it_at_once_one_wins(tmp_path):
    with ThreadPoolExecutor(16) as many:
        keys = set(many.map(lambda _: Upgrades(tmp_path).upgrade_key("n"), range(64)))
    assert len(keys) == 1


def test_damaged_or_out_of_reach(tmp_path):
    (tmp_path / "agent.key").write_bytes(b"short")
    with pytest.raises(StoreError, match=r"agent\.key is damaged: it has 5 bytes, not 32"):
        Upgrades(tmp_path)
    (tmp_path / "agent.key").unlink()
    (tmp_path / "agent.key").mkdir()
    with pytest.raises(StoreError, match="Is a directory"):
        Upgrades(tmp_path)
