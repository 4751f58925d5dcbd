"""gpulse.toml."""

from gpulse.config import load
from gpulse.errors import ConfigError
from tests.fuzz.targets.files import holding

SEEDS = [
    b'[hub]\nport = 7070\nlisten = "127.0.0.1"\n[ssh]\nuser = "me"\n[[nodes]]\nhosts = "gpu[1-3]"\ngroup = "a"\n',
    b'[people]\nbob = "Bob"\n[models]\n"NVIDIA A" = "A"\n[thresholds]\nheld_memory = "1G"\n',
    b'a = [1, {b = "c"}]\n[x.y."z"]\nd = 1979-05-27T07:32:00Z\n',
]
WORDS = ["[[nodes]]", "hosts", '"""', "'''", "{", "inf", "nan", "0x", "\\x0d\\x0a", "[hub]", "port"]


def fuzz(data: bytes) -> None:
    try:
        load(holding(data))
    except ConfigError as refused:
        assert refused.problems
        assert all(refused.problems)
