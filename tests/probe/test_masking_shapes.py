"""A table of command lines: in each exactly what is marked as a secret is masked, and nothing else."""

import re
import shlex
from pathlib import Path

import pytest

from gpulse_probe.masking import MASK, mask

TABLE = Path(__file__).with_name("masking_shapes.txt")
ALPHABETS = {
    "": "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2xF4",
    "h": "0123456789abcdef",
    "d": "7301948265",
    "A": "Q7R2M9T4W3K8",
}


def lines() -> list[str]:
    text = TABLE.read_text(encoding="utf-8").splitlines()
    return [line for line in text if line and not line.startswith(("#", "["))]


def made_up(found: re.Match[str]) -> str:
    """Return a secret of the alphabet and length that the table asks for."""
    alphabet, length = ALPHABETS[found[1]], int(found[2] or 13)
    return (alphabet * (length // len(alphabet) + 1))[:length]


def test_the_table_is_long_enough() -> None:
    secret = [line for line in lines() if "‹" in line]
    assert len(secret) >= 200 and len(lines()) - len(secret) >= 100
    assert len(set(lines())) == len(lines())


@pytest.mark.parametrize("line", lines())
def test_exactly_the_secret_is_masked(line: str) -> None:
    marked = shlex.split(re.sub(r"§([hdA]?)(\d*)", made_up, line))
    arguments = [word.replace("‹", "").replace("›", "") for word in marked]
    assert mask(arguments) == [re.sub("‹.*?›", MASK, word, flags=re.DOTALL) for word in marked]
