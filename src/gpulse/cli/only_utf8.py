"""Words of the command line may be any bytes; those that are no letters cannot be sent, and are named."""

from collections.abc import Iterator
from contextlib import contextmanager

from gpulse.errors import GpulseError


@contextmanager
def only_utf8() -> Iterator[None]:
    """For what encodes text: GpulseError where there is something else in it."""
    try:
        yield
    except UnicodeEncodeError as error:
        raw = error.object.encode("utf-8", "surrogateescape")
        raise GpulseError(
            f'"{raw.decode("utf-8", "backslashreplace")}" is not UTF-8; write it with a terminal that is set to UTF-8'
        ) from None
