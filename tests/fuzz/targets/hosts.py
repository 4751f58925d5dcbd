"""Hosts as people type them."""

from gpulse.config import hosts
from gpulse.errors import HostsError

SEEDS = [b"me@gpu[01-16,20]:2222 a,b!b", b"[fe80::1]:22 @rack1 10.0.0.1", b"a[1-9/2]b[1-3]&a1b1 ^ x*"]
# Found here.
SEEDS += [b"a1b1[-1-3/2]", b"gp222p22222[-1-3]"]
WORDS = ["[1-3]", "@", "/2", "::", "!", "&", "^", "[-1-3]", "[001-10]"]


def fuzz(data: bytes) -> None:
    try:
        found = hosts.parse(data.decode("utf-8", "surrogateescape"))
    except HostsError as refused:
        assert str(refused)
        return
    assert 0 < len(found) <= hosts.MOST_HOSTS
    # As it is written, it is understood again.
    for address in found[:20]:
        assert hosts.parse(str(address)) == [address]
