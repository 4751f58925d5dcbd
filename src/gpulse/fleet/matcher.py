"""Compares the words of filters with texts: the only place that does, and it is given nothing but visible text.

A comparison takes longer the more of a text fits. So text that is hidden from whoever asks must not come here, even if
what is found is dropped afterwards: the time would tell.
"""


def contains(text: str | None, word: str) -> bool:
    """Whether the text, casefolded already, has the word in it."""
    return text is not None and word in text


def equals(text: str | None, word: str) -> bool:
    """Whether the text, casefolded already, is the word."""
    return text is not None and text == word
