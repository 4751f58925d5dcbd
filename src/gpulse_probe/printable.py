"""Text from outside, made safe for a terminal and for a log: no character in it controls anything.

Control characters (C0, DEL, C1), bidirectional controls, separators of lines and paragraphs, invisible characters and
stray bytes are written out: \\x1b, \\x9b, \\u202e. `clean` is the one door to terminals and logs, on nodes and on the
hub.
"""

import os

ERRORS = 2

_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def clean(text):
    """Return the text on one line: whitespace becomes a blank, other characters that do not print are written out."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else " " if one.isspace() else written_out(one) for one in text)


def complain(words):
    """Write a line to standard error. Not by sys.stderr, which is None where it was closed."""
    os.write(ERRORS, (clean(words) + "\n").encode("utf-8", "backslashreplace"))


def printable(text):
    """Return the text with all that does not print written out, whitespace too: \\n, \\x1b, \\xff, \\u202e."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else written_out(one) for one in text)


def written_out(character):
    """Return the escape sequence a shell or Python would read as this character."""
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        # A byte that is no UTF-8, as "surrogateescape" keeps it.
        code -= 0xDC00
    elif character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return "\\x%02x" % code
    return "\\u%04x" % code if code < 0x10000 else "\\U%08x" % code
