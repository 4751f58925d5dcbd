"""Hosts as people type them, beside what ClusterShell and Flux say about ranges."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulse.config.hosts import MOST_HOSTS, Address, is_host, parse
from gpulse.errors import HostsError
from tests.testdata import capture


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with two groups of nodes; a third cannot be told."""
    (tmp_path / "groups.conf").write_text(
        "[Main]\ndefault: here\n"
        "[here]\nmap: grep -s ^$GROUP: $CFGDIR/groups | cut -d: -f2\nall: cut -d: -f2 $CFGDIR/groups\n"
        "[broken]\nmap: exit 3\n"
    )
    (tmp_path / "groups").write_text("rack1:gpu[01-03]\nrack2:gpu[10-11],login\n")
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    return tmp_path


def told(text: str) -> str:
    with pytest.raises(HostsError) as caught:
        parse(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu01", "gpu01"),
        ("gpu[01-03,20]", "gpu01 gpu02 gpu03 gpu20"),
        ("b a,c\n d ,", "b a c d"),
        ("me@gpu[1-2]:2222", "me@gpu1:2222 me@gpu2:2222"),
        ("first.last@corp.org@gpu1 LAB\\me@gpu2", "first.last@corp.org@gpu1 LAB\\me@gpu2"),
        ("gpu[ 9 - 11 ]", "gpu9 gpu10 gpu11"),
        ("r[1-2]n[1-2].x.org", "r1n1.x.org r1n2.x.org r2n1.x.org r2n2.x.org"),
        ("10.0.0.[8-10]:22", "10.0.0.8:22 10.0.0.9:22 10.0.0.10:22"),
        ("[::1] me@[fe80::1%eth0]:22 2001:db8::7", "[::1] me@[fe80::1%eth0]:22 [2001:db8::7]"),
        ("127.0.0.1:2201 127.0.0.1:2202", "127.0.0.1:2201 127.0.0.1:2202"),
        ("gpu1 gpu1 gpu[1-2]", "gpu1 gpu2"),
        ("gpu[1-4],gpu9!gpu3", "gpu1 gpu2 gpu4 gpu9"),
        ("gpu[1-4] ! gpu3 , gpu3", "gpu1 gpu2 gpu4 gpu3"),
        ("me@gpu[1-4]:22!gpu3", "me@gpu1:22 me@gpu2:22 me@gpu4:22"),
        ("a:1 a:2!a:2", "a:1"),
        ("gpu[1-4]&gpu[3-9]", "gpu3 gpu4"),
        ("gpu[1-3]^gpu[3-4]", "gpu1 gpu2 gpu4"),
    ],
)
def test_hosts(text, expected):
    assert " ".join(map(str, parse(text))) == expected


def test_parts_of_an_address():
    assert parse("me@[::1]:2222") == [Address("::1", 2222, "me")]
    assert parse("gpu1") == [Address("gpu1", None, None)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", '"" names no host'),
        (" , ", '" , " names no host'),
        ("gpu[01-16]!gpu[01-16]", '"gpu[01-16]!gpu[01-16]" names no host'),
        ("gpu[01-16", '"gpu[01-16" has a "[" without its "]"'),
        ("gpu]", '"gpu]" has a "]" too many'),
        ("gpu[[1]]", '"gpu[[1]]" has a "[" too many'),
        ("gpu[3-1]", '"gpu[3-1]": bad range: invalid values in range : 3-1'),
        ("gpu[a-b]", '"gpu[a-b]": "a-b" is no range; allowed: such as 01-16 or 1-9/2'),
        ("gpu[1_0]", '"gpu[1_0]": "1_0" is no range; allowed: such as 01-16 or 1-9/2'),
        ("a1[-1-3/2]", '"a1[-1-3/2]": "-1-3/2" is no range; allowed: such as 01-16 or 1-9/2'),
        ("a[-1-3]5", '"a[-1-3]5": "-1-3" is no range; allowed: such as 01-16 or 1-9/2'),
        ("a[1-3]999999999", '"a[1-3]999999999": range too large'),
        ("a1,p2222222222[1,-1-3]", '"a1,p2222222222[1,-1-3]": "-1-3" is no range; allowed: such as 01-16 or 1-9/2'),
        ("gpu!", '"gpu!" has nothing after "!"'),
        ("gpu!,a", '"gpu!,a" has nothing after "!"'),
        ("a!&b", '"a!&b" has nothing between "!" and "&"'),
        ("me@", '"me@": a host is missing'),
        ("gpu1:0", '"gpu1:0": "0" is no port; allowed: 1 to 65535'),
        ("gpu1:ssh", '"gpu1:ssh": "ssh" is no port; allowed: 1 to 65535'),
        ("[::g]", '"[::g]": "::g" is no IPv6 address'),
        ("1:2:3", '"1:2:3": "1:2:3" is no IPv6 address'),
        ("-oProxyCommand=x", '"-oProxyCommand=x": "=" cannot be part of a host\'s name'),
        ("-x", '"-x": "-x" is no host name'),
        ("-l@gpu1", '"-l@gpu1": "-l" is no user name'),
        ("$(id)@gpu1", '"$(id)@gpu1": "$(id)" is no user name'),
        ("gpu1;id", '"gpu1;id": ";" cannot be part of a host\'s name'),
        ("gpu[1-1000000000]", f'"gpu[1-1000000000]" names more than {MOST_HOSTS} hosts'),
        ("a[1-999]b[1-999]", f'"a[1-999]b[1-999]" names more than {MOST_HOSTS} hosts'),
        ("a gpu1 me@gpu1", '"a gpu1 me@gpu1" names gpu1 twice, as gpu1 and as me@gpu1'),
    ],
)
def test_what_names_no_hosts(text, words):
    assert told(text) == words


@pytest.mark.parametrize(
    ("text", "count", "some"),
    [
        ("gpu[0001-12500]", 12_500, {0: "gpu0001", 9_998: "gpu9999", 9_999: "gpu10000", -1: "gpu12500"}),
        ("gpu[00-100]", 101, {0: "gpu00", 99: "gpu99", -1: "gpu100"}),
        ("gpu[001-1000/3]", 334, {0: "gpu001", 332: "gpu997", -1: "gpu1000"}),
        ("gpu[08-12]", 5, {0: "gpu08", -1: "gpu12"}),
    ],
)
def test_numbers_grow_longer_where_the_zeros_are_used_up(text, count, some):
    hosts = [address.host for address in parse(text)]
    assert len(hosts) == count
    assert {place: hosts[place] for place in some} == some


def test_one_host():
    for text in ("gpu1", "gpu_1.x.org", "10.0.0.1", "::1", "fe80::1%eth0", "é"):
        assert is_host(text), text
    for text in (
        "",
        "-x",
        "a b",
        "gpu[1-2]",
        "me@a",
        "a:22",
        "[::1]",
        "@rack",
        "$(id)",
        "a\n",
        "fe80::1%$(id)",
        "a" * 300,
    ):
        assert not is_host(text), text


@pytest.mark.usefixtures("groups")
def test_groups():
    assert [address.host for address in parse("@rack1")] == ["gpu01", "gpu02", "gpu03"]
    assert [address.host for address in parse("@rack[1-2]!gpu02")] == ["gpu01", "gpu03", "gpu10", "gpu11", "login"]
    assert parse("me@@rack2")[0] == Address("gpu10", None, "me")
    assert parse("me@@here:rack2:2222")[0] == Address("gpu10", 2222, "me")
    assert [address.host for address in parse("gpu1*")] == ["gpu10", "gpu11"]


def test_groups_that_are_not_there(groups):
    assert told("@rack9") == '"@rack9": ClusterShell knows no group @rack9'
    assert told("@slurm:x").startswith('"@slurm:x": ClusterShell has no group source "slurm" here')
    assert told("@broken:x").startswith('"@broken:x": ClusterShell\'s groups cannot be read: ')
    (groups / "groups.conf").write_text("no section\n")
    assert told("@rack1").startswith('"@rack1": ClusterShell\'s groups cannot be read: ')


def test_examples_of_clustershell_are_no_groups(tmp_path, monkeypatch):
    monkeypatch.setenv("CLUSTERSHELL_CFGDIR", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for text in ("@*", "*", "example[4-5],@adm"):
        with pytest.raises(HostsError):
            parse(text)


@pytest.mark.usefixtures("groups")
def test_a_group_is_no_command():
    for text in ("@rack1;touch", "@$(id)", "@`id`", "@rack1|id"):
        assert "cannot be part of a host's name" in told(text)


# Blanks part hosts for us, % is part of none; the folded forms of these are what NodeSet prints with other settings.
NOT_OURS = ("testWhitespaceInsideNodeName", "testNodeWithPercent")


def test_as_clustershell():
    cases = json.loads(capture("cea-hpc+clustershell/nodeset_cases_A.json"))
    compared = 0
    for case in cases:
        text = case["expr"]
        if case["test"] in NOT_OURS:
            continue
        if "error" in case:
            # A comma too many is no mistake for us, nor for Flux.
            if text.strip(",") == text:
                told(text)
            continue
        hosts = [address.host for address in parse(text)]
        if case["count"] is not None:
            assert len(hosts) == case["count"], text
            compared += 1
        if case["list"] is not None:
            assert sorted(hosts) == sorted(case["list"]), text
            compared += 1
        if case["folded"] and case["test"] != "test_internal_mismatch":
            assert sorted(hosts) == sorted(address.host for address in parse(case["folded"])), text
            compared += 1
    assert compared > 100


def test_as_flux():
    cases = json.loads(capture("flux-framework+flux-core/hostlist_cases.json"))
    for text, folded, count in cases["codec_test"]:
        if text == "p[00-3]p":
            # Flux fills up with zeros, ClusterShell calls it a mistake.
            assert "padding length mismatch" in told(text)
            continue
        hosts = [address.host for address in parse(text)]
        assert len(hosts) == count, text
        assert hosts == [address.host for address in parse(folded)], text
    for text, host, place in cases["find_test"]:
        hosts = [address.host for address in parse(text)]
        assert (hosts.index(host) if host in hosts else -1) == place, text
    for text, gone, _, left in cases["delete_test"]:
        if left:
            assert [a.host for a in parse(f"{text}!{gone}")] == [a.host for a in parse(left)], text
        else:
            told(f"{text}!{gone}")
    for text in cases["invalid_decode"]:
        told(text)


LETTERS = st.text(st.sampled_from("ag01-9[],/@:!&^ .%*?\n\\é"), max_size=24)


@given(st.one_of(LETTERS, st.text(max_size=40)))
@example("@")
@example("@@")
@example("a[1-2/0]")
@example("[1]" * 40)
@example("a[" + "9" * 5000 + "]")
@example("a" + "9" * 5000)
@example("²[1-2]")
def test_any_text(text):
    try:
        addresses = parse(text)
    except HostsError as error:
        assert "\n" not in str(error)
        return
    assert 0 < len(addresses) <= MOST_HOSTS
    assert parse(" ".join(map(str, addresses))) == addresses
