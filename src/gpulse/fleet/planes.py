"""Figures of all GPUs as the small whole numbers that live frames and the last minutes have; pure."""

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint16]

UNKNOWN_BYTE = 255
UNKNOWN_WORD = 65535
# Shares are told in half percents.
WHOLE = 200


def as_bytes(values: NDArray[np.float32]) -> Bytes:
    with np.errstate(invalid="ignore"):
        # What NaN becomes does not matter: it is overwritten.
        numbers = np.clip(values, 0, UNKNOWN_BYTE - 1).astype(np.uint8)
    np.putmask(numbers, np.isnan(values), UNKNOWN_BYTE)
    return numbers


def as_words(values: NDArray[np.float32]) -> Words:
    """Little-endian on every machine."""
    with np.errstate(invalid="ignore"):
        numbers = np.clip(values, 0, UNKNOWN_WORD - 1).astype("<u2")
    np.putmask(numbers, np.isnan(values), UNKNOWN_WORD)
    return numbers
