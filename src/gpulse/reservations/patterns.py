"""What the patterns of written times have in common."""

import re

WORD_END = r"(?!\w)"


def pattern(text: str) -> re.Pattern[str]:
    """Digits and letters are those of ASCII."""
    return re.compile(text, re.ASCII)
