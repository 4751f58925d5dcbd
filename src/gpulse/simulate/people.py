"""Simulated people: who they are and what they like to run."""

from typing import NamedTuple


class Person(NamedTuple):
    """Habits: how often each kind of work is chosen, where it is wanted, and how it gives way to others."""

    user: str
    uid: int
    # Kinds of work of jobs.py, with weights.
    habits: dict[str, float]
    # Groups of nodes they go to first.
    groups: tuple[str, ...] = ()
    nice: int = 0


PEOPLE = (
    Person("alice", 2001, {"pretraining": 3, "training": 3, "notebook": 1}, ("h100",)),
    Person("bchen", 2002, {"training": 5, "sweep": 2}, ("a100", "h100")),
    Person("carlos", 2003, {"pretraining": 2, "training": 4}, ("h100",)),
    Person("dmitri", 2004, {"sweep": 6, "training": 1}, ("a100",), nice=10),
    Person("emma", 2005, {"notebook": 4, "training": 1}, ("workstations",)),
    Person("fatima", 2006, {"training": 4, "notebook": 2}, ("a100",)),
    Person("georg", 2007, {"serving": 5, "notebook": 1}, ("l40s",)),
    Person("hiro", 2008, {"rendering": 3, "training": 2}, ("workstations", "l40s")),
    Person("ines", 2009, {"training": 3, "sweep": 2, "notebook": 2}, ("workstations", "a100")),
    Person("jsmith", 2010, {"notebook": 5, "sweep": 1}, ("a100",)),
    Person("kofi", 2011, {"simulation": 5}, ("a100", "h100")),
    Person("lena", 2012, {"training": 3, "serving": 1}, ("l40s", "workstations")),
    Person("svc-llm", 2900, {"serving": 1}, ("h100", "l40s")),
)
