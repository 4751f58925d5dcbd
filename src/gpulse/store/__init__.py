"""What the hub keeps: one database, one thread that speaks to it, a file for each group of tables."""

from gpulse.store.records import Records

__all__ = ["Records"]
