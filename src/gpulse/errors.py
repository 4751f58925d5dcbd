"""Everything that can go wrong in words a person can act on.

GpulseError
└── BundleError      the probe's bundle cannot be made
"""


class GpulseError(Exception):
    """A message that names the thing, the cause and the next step."""


class BundleError(GpulseError):
    """The probe's bundle cannot be made."""
