"""known_hosts files and jump hosts as people write them, and as nobody should."""

import asyncssh
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulse.errors import NodeLost
from gpulse.transport import host_keys
from gpulse.transport.host_keys import HostKeys
from gpulse.transport.ssh_options import hops

KEY, OTHER = (asyncssh.generate_private_key("ssh-ed25519").convert_to_public() for _ in range(2))
LINE = KEY.export_public_key().decode().strip()


def test_a_file_is_read_again_when_it_changes(tmp_path):
    file, keys = tmp_path / "deep" / "known_hosts", HostKeys()
    assert keys.match([file], "gpu01", None) == ([], [], [])
    host_keys.add(file, "gpu01", KEY)
    assert keys.match([file], "gpu01", None) == ([KEY], [], [])
    host_keys.add(file, "[gpu01]:2222", OTHER)
    assert keys.match([file], "gpu01", 2222) == ([OTHER], [], [])
    assert file.read_text().count("\n") == 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_unknown_or_changed(tmp_path):
    file, keys = tmp_path / "known_hosts", HostKeys()
    host_keys.add(file, "gpu01", KEY)
    assert keys.verdict([file], "gpu01", None, OTHER) == "changed"
    assert keys.verdict([file], "gpu02", None, OTHER) == "unknown"
    # Another sshd on the same host is another host.
    assert keys.verdict([file], "gpu01", 2222, OTHER) == "unknown"


def test_addresses_vouch_for_nobody(tmp_path):
    file = tmp_path / "known_hosts"
    file.write_text(f"10.0.0.1 {LINE}\n")
    assert HostKeys().match([file], "gpu01", None)[0] == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200) | st.text().map(lambda text: f"{text} {LINE}".encode()))
def test_any_file(tmp_path, data):
    file = tmp_path / "known_hosts"
    file.write_bytes(data + b"\n" + f"gpu01 {LINE}\n".encode())
    assert KEY in HostKeys().match([file], "gpu01", None)[0] + HostKeys().match([file], "gpu01", None)[2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bastion", [("bastion", None, None)]),
        ("ada@one:2222, [fe80::1]:22,ssh://two", [("one", "ada", 2222), ("fe80::1", None, 22), ("two", None, None)]),
        ("fe80::1", [("fe80::1", None, None)]),
    ],
)
def test_jump_hosts(text, expected):
    assert hops(text) == expected


@pytest.mark.parametrize("text", ["", "a,,b", "host:²", "host:70000", "host:x", "[::1]:0", "@"])
def test_what_is_no_jump_host(text):
    with pytest.raises(NodeLost, match="is no host"):
        hops(text)


@given(st.text() | st.from_regex(r"[a@:\[\],0-9]{0,12}"))
def test_any_jump_host(text):
    try:
        assert all(host for host, _user, _port in hops(text))
    except NodeLost as problem:
        assert problem.fix
