"""Lines of a table: texts with a colour each, measured in columns of a terminal, cut to fit and then painted."""

from unicodedata import category, east_asian_width

from gpulse_probe.printable import clean

# What a terminal that knows nothing but ASCII is shown instead.
_ASCII = {ord(fine): plain for fine, plain in zip("█░·×–└…°", "#.-x-`~ ")}


class Line:
    """A row of texts, each with a colour or None. Every text is cleaned on its way in."""

    def __init__(self, *texts):
        self._cells = []
        for text in texts:
            self.add(text)

    def add(self, text, colour=None):
        """The line itself, with a text more."""
        self._cells.append((clean(str(text)), colour))
        return self

    def extend(self, other):
        self._cells += other._cells
        return self

    def ends_blank(self):
        """Whether the last text is empty, or ends with a blank."""
        return not self._cells or not self._cells[-1][0] or self._cells[-1][0].endswith(" ")

    def coloured(self, colour):
        """The same line in one colour."""
        line = Line()
        line._cells = [(text, colour) for text, _ in self._cells]
        return line

    def drawn(self, width, paint):
        """The line as text of at most so many columns; paint: with colours."""
        return "".join(_painted(text, colour) if paint else text for text, colour in self._fitting(width))

    def _fitting(self, width):
        if sum(columns(text) for text, _ in self._cells) <= width:
            return self._cells
        fitting = []
        left = width - 1
        for text, colour in self._cells:
            for place, character in enumerate(text):
                left -= columns(character)
                if left < 0:
                    return [*fitting, (text[:place], colour), ("…" if width > 0 else "", None)]
            fitting.append((text, colour))
        return fitting


def columns(text):
    """How many columns of a terminal a text takes."""
    return sum(_columns(character) for character in text)


def _columns(character):
    if category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def left(text, width):
    """A clean text, with blanks after it up to so many columns."""
    text = clean(text)
    return text + " " * max(0, width - columns(text))


def in_ascii(text):
    return text.translate(_ASCII)


def _painted(text, colour):
    return "\x1b[%sm%s\x1b[0m" % (colour, text) if colour and text else text
