"""What Consul answers when it is asked for a service."""

from gpulse.config.hosts import is_host
from gpulse.discovery.consul import decode
from gpulse.errors import DiscoveryError

_ENTRY = (
    b'{"Node":{"Node":"gpu01","Address":"10.0.0.1","Meta":{"rack":"r1"}},'
    b'"Service":{"Address":"","Port":7080,"Tags":["a"],"Meta":null},"Checks":[{"Status":"passing"}]}'
)
SEEDS = [b"[%b,%b]" % (_ENTRY, _ENTRY.replace(b"01", b"02")), b"[]"]
WORDS = ['"Node":', '"Service":', '"Port":', '"Address":', "null", "-1", '"::1"', '"fe80::1%e"', "99999999999999999999"]


def fuzz(data: bytes) -> None:
    problems: list[str] = []
    try:
        found = decode(data, problems)
    except DiscoveryError as refused:
        assert str(refused)
        return
    assert all(problems)
    for one in found:
        assert is_host(one.host)
        assert is_host(one.name)
        assert one.port is None or 0 < one.port < 65536
