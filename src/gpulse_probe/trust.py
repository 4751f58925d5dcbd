"""How this node knows that a hub at https is its own: by certificates it trusts, or by the fingerprint of its key."""

import os
from collections import namedtuple

from gpulse_probe.options import UsageError


class Trust(namedtuple("Trust", "ca fingerprint")):
    """ca: a file of certificates, None for the system's; fingerprint: None, or the one that alone counts."""

    __slots__ = ()


SYSTEM = Trust(None, None)


def read(hub, ca, text):
    """What the options say; UsageError where they do not go together."""
    if ca is not None and text is not None:
        raise UsageError("--ca and --fingerprint exclude each other: the fingerprint alone says which hub it is")
    if ca is not None and not os.access(ca, os.R_OK):
        raise UsageError("--ca: %s cannot be read" % ca)
    if text is None:
        return Trust(ca, None)
    if not hub.secure:
        raise UsageError("--fingerprint goes with a hub at https://, and %s is not" % (hub,))
    # Not every hub is at https.
    from gpulse_probe import fingerprint

    try:
        return Trust(None, fingerprint.read(text))
    except ValueError as error:
        raise UsageError("--fingerprint: %s; gpulse up prints it" % error)
