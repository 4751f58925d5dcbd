"""Tokens as whoever asks writes them."""

from gpulse.auth import token_text
from gpulse.errors import TokenRefused

SEEDS = [b"gpn_0123456789ab_" + b"0123456789abcdef" * 3, b"gpj_0123456789ab_" + b"a" * 48, b""]
WORDS = ["gpn_", "gpj_", "\\x0a"]


def fuzz(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    try:
        parts = token_text.read(text)
    except TokenRefused as refused:
        assert refused.status == 401
        assert not text or len(text) < 20 or text not in f"{refused.message} {refused.detail}"
        return
    assert len(text) == 65
    assert text[4:16] == parts.id
