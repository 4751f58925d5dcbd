"""The figures by which states are told; config reads them from [thresholds] and, as the lower layer, defines them."""

from gpulse.config.thresholds import Thresholds

__all__ = ["Thresholds"]
