"""Files that list nodes: a host a line, and config.ini."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.config import Reach
from gpulse.discovery import HostFile, IniFile
from gpulse.errors import DiscoveryError


def test_a_host_a_line(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_bytes(
        b"\xef\xbb\xbf# our nodes\r\n\r\n"
        b"gpu01   # the old one\r\n"
        b"me@gpu02:2222\n"
        b"# caf\xe9 nodes\n"
        b"\tgpu[10-11].x.org\n"
        b"[fe80::1]:22\n2001:db8::7\n"
    )
    told: list[str] = []
    source = HostFile(path, Reach(group="lab", user="ops"))
    targets = source.targets(told.append)
    assert told == []
    assert [(target.host, target.user, target.port) for target in targets] == [
        ("gpu01", "ops", None),
        ("gpu02", "me", 2222),
        ("gpu10.x.org", "ops", None),
        ("gpu11.x.org", "ops", None),
        ("fe80::1", "ops", 22),
        ("2001:db8::7", "ops", None),
    ]
    assert {target.group for target in targets} == {"lab"}
    mark = source.mark()
    assert mark == source.mark()
    path.write_text("gpu02\n")
    assert source.mark() != mark


def test_a_bad_line_is_told_and_the_others_are_kept(tmp_path):
    path = tmp_path / "nodes.txt"
    path.write_bytes(b"gpu1\ngpu[2-\ngpu3:x\n\ncaf\xe9\ngpu4\n")
    told: list[str] = []
    assert [target.name for target in HostFile(path).targets(told.append)] == ["gpu1", "gpu4"]
    assert told == [
        f'{path}:2: "gpu[2-" has a "[" without its "]"',
        f'{path}:3: "gpu3:x": "x" is no port; allowed: 1 to 65535',
        f'{path}:5: "caf\ufffd": "\ufffd" cannot be part of a host\'s name',
    ]


@pytest.mark.parametrize("kind", [HostFile, IniFile])
def test_no_file(tmp_path, kind):
    with pytest.raises(DiscoveryError, match="gone: cannot be read: No such file or directory"):
        kind(tmp_path / "gone").targets(print)


def test_ini(tmp_path):
    path = tmp_path / "config.ini"
    path.write_text(
        "[common]\nuser = yourusername\nhosts = host1.domain.tld,host2.domain.tld\nkey_filename=keys/100%\n[web]\nx=1\n"
    )
    told: list[str] = []
    targets = IniFile(path, Reach(rack="r1", user="other")).targets(told.append)
    assert told == []
    assert [(target.name, target.user, target.rack) for target in targets] == [
        ("host1.domain.tld", "yourusername", "r1"),
        ("host2.domain.tld", "yourusername", "r1"),
    ]
    assert targets[0].identity_files == (tmp_path / "keys/100%",)


def test_ini_with_less_and_more(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/somewhere")
    path = tmp_path / "config.ini"
    path.write_text("[common]\nHosts: gpu[1-2]\n  gpu3\ntimeout = 5\nkey_filename = ~/.ssh/id\n")
    told: list[str] = []
    targets = IniFile(path, Reach(user="ops")).targets(told.append)
    assert [(target.name, target.user) for target in targets] == [("gpu1", "ops"), ("gpu2", "ops"), ("gpu3", "ops")]
    assert targets[0].identity_files == (Path("/somewhere/.ssh/id"),)
    assert told == [f"{path}:4: [common] timeout: is not used; known are user, hosts, key_filename"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts = a\n", ":1: is no INI file: text stands before the first [section]"),
        ("[web]\n", ": [common] is missing; it has user, hosts, key_filename"),
        ("[common]\nuser = me\n", ": [common] hosts: is missing; it names the nodes"),
        ("[common]\nuser = me\nhosts =\n", ':3: [common] hosts: "" names no host'),
        ("[common]\nhosts = a[1\n", ':2: [common] hosts: "a[1" has a "[" without its "]"'),
        ("[common]\nhosts = a\nhosts = b\n", ":3: is no INI file: hosts stands there twice"),
        ("[common]\n[common]\n", ":2: is no INI file: [common] stands there twice"),
        ("[common]\nhosts\n", ":2: is no INI file: this line is neither [section] nor key = value"),
    ],
)
def test_bad_ini(tmp_path, text, words):
    path = tmp_path / "config.ini"
    path.write_text(text)
    with pytest.raises(DiscoveryError) as caught:
        IniFile(path).targets(print)
    assert str(caught.value) == f"{path}{words}"


LINES = st.lists(
    st.one_of(
        st.sampled_from(["[common]", "hosts = a", "user=", "key_filename=~nobody\0", " x", "[", "%"]),
        st.text(max_size=9),
    ),
    max_size=6,
)


@pytest.mark.parametrize("kind", [HostFile, IniFile])
@given(data=st.one_of(st.binary(max_size=100), LINES.map(lambda lines: "\n".join(lines).encode("utf-8", "replace"))))
@example(data=b"[common]\nhosts = a\nkey_filename = ~nobody-here/x")
@example(data=b"[common]\nhosts = a\nkey_filename = a\0b")
def test_any_bytes(kind, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nodes"
        path.write_bytes(data)
        told: list[str] = []
        try:
            targets = kind(path).targets(told.append)
        except DiscoveryError as error:
            told.append(str(error))
            targets = []
    assert all(words.startswith(str(path)) for words in told)
    assert all(target.name for target in targets)
