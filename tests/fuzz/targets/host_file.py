"""A file of hosts, one a line."""

from gpulse.config import hosts
from gpulse.discovery import HostFile
from gpulse.errors import DiscoveryError
from tests.fuzz.targets.files import holding

SEEDS = [b"gpu01\nme@gpu02:2222 # comment\r\n\n\xef\xbb\xbfgpu[3-5]\n", b"bad host!\n@\n"]
WORDS = ["#", "[1-3]", "\\x0d\\x0a", "@"]


def fuzz(data: bytes) -> None:
    told: list[str] = []
    try:
        found = HostFile(holding(data)).targets(told.append)
    except DiscoveryError as refused:
        assert str(refused)
        return
    assert all(told)
    assert len({(target.host, target.port) for target in found}) <= hosts.MOST_HOSTS * (data.count(b"\n") + 1)
