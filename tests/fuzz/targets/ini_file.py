"""A config.ini with hosts in [common]."""

from gpulse.discovery import IniFile
from gpulse.errors import DiscoveryError
from tests.fuzz.targets.files import holding

SEEDS = [b"[common]\nuser = me\nhosts = a, b[1-3]\nkey_filename = ~/.ssh/id\n", b"[common]\nhosts: %(x)s\n x\n[b]\n"]
WORDS = ["[common]", "hosts", "key_filename", "user", "~nobody-of-this-name/", "DEFAULT"]


def fuzz(data: bytes) -> None:
    told: list[str] = []
    try:
        found = IniFile(holding(data)).targets(told.append)
    except DiscoveryError as refused:
        assert str(refused)
        return
    assert found
    assert all(told)
