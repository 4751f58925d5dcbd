"""Which node a host of a comments.json is; none is booked in the place of another."""

import pytest

from gpulse.reservations.hosts import Hosts

NODES = [
    "gpu01", "gpu02.lab.example", "twin.a", "twin.b", "GPU03", "Gpu03", "10", "10.0.0.7", "192.168.1.9",
    "2001:db8::7", "42.lab.example", "box.site-b.org",
]  # fmt: skip


@pytest.mark.parametrize(
    ("host", "node"),
    [
        ("gpu01", "gpu01"),
        (" GPU01 ", "gpu01"),
        ("gpu01.lab.example", "gpu01"),
        ("gpu02", "gpu02.lab.example"),
        ("GPU02.Lab.Example.", "gpu02.lab.example"),
        ("Gpu03", "Gpu03"),
        ("10.0.0.7", "10.0.0.7"),
        ("10", "10"),
        ("2001:DB8::7", "2001:db8::7"),
        ("42", "42.lab.example"),
    ],
)
def test_the_node_that_is_meant(host, node):
    assert Hosts(NODES, [host]).node(host) == (node, "")


@pytest.mark.parametrize(
    "host", ["10.0.0.5", "10.0.0.7:22", "192", "192.168.1", "2001", "2001:db8::5", "10.1", "", "."]
)
def test_an_address_is_no_other(host):
    assert Hosts(NODES, [host]).node(host) == (None, f'there is no node "{host}"')


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("twin", "twin.a, twin.b may be meant"),
        ("gpu03", "GPU03, Gpu03 may be meant"),
        ("gpu03.lab.example", "GPU03, Gpu03 may be meant"),
        ("box.site-a.org", "in another domain there is box.site-b.org"),
        ("twin.c", "in another domain there is twin.a, twin.b"),
    ],
)
def test_where_others_may_be_meant_it_is_none(host, why):
    assert Hosts(NODES, [host]).node(host) == (None, f'there is no node "{host}"; {why}')


def test_of_two_hosts_that_may_be_one_node_it_is_neither():
    hosts = Hosts(NODES, ["gpu01.site-a.org", "gpu01.site-b.org", "gpu02", "GPU02"])
    assert hosts.node("gpu01.site-a.org") == (
        None,
        'there is no node "gpu01.site-a.org"; gpu01 may be meant, which "gpu01.site-b.org" of the file may be, too',
    )
    assert hosts.node("gpu01.site-b.org")[0] is None
    # In other letters it is the same host.
    assert hosts.node("gpu02") == hosts.node("GPU02") == ("gpu02.lab.example", "")


def test_the_host_that_has_the_name_of_the_node_is_the_node():
    hosts = Hosts(NODES, ["gpu01", "gpu01.site-b.org"])
    assert hosts.node("gpu01") == ("gpu01", "")
    assert hosts.node("gpu01.site-b.org")[0] is None
