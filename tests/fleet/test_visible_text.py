"""Filters look only in text that is visible to whoever asks: how long a search takes tells nothing of the rest."""

from collections.abc import Iterator

import pytest

from gpulse.fleet import matcher
from gpulse.fleet.booked import Booked
from gpulse.fleet.filter import parse
from gpulse.fleet.fleet import Fleet, FleetSettings
from gpulse.fleet.jobs import job_of
from gpulse.fleet.model import Process
from gpulse.fleet.places import Place
from gpulse.fleet.search import Search
from gpulse.fleet.seeing import seen_one, seen_texts
from gpulse.fleet.sight import FULL, Sight
from tests.fleet.lines import gpu, process, snapshot, update

CGROUP = "/system.slice/slurmstepd.scope/job_{}/step_0/hidden-group"
# Texts that each level hides of others; of carol, who asks, nothing is hidden.
HIDDEN = {
    "names": ("mueller77", "hidden-folder", "hidden-group", "hidden-comment", "hidden-title"),
    "anonymous": ("mueller77", "hidden", "bob", "robert", "prog", "4711", "updated"),
}
LEVELS = [
    FULL,
    Sight("names"),
    Sight("anonymous"),
    Sight("names", frozenset({"carol"})),
    Sight("anonymous", frozenset({"carol"})),
]
QUESTIONS = [
    "mueller77",
    "m",
    "-mueller77",
    '"--patient=mueller77"',
    "4711",
    "job:4711",
    "-job:47",
    "user:bob",
    "user:robert",
    "user:somebody",
    "reserved:bob",
    "reserved:robert",
    "mine",
    "hidden-comment",
    "hidden-title",
    "prog",
    "updated",
    "somebody",
    "own-secret",
    "group:lab",
    "rack:r7",
    "gpu1 bob mueller77 job:4711 user:bob",
]


def _fleet() -> Fleet:
    fleet = Fleet(FleetSettings(people={"bob": "Robert"}), clock=lambda: 10.0, wall=lambda: 1000.0)
    fleet.place(Place(name="gpu1", group="lab", rack="r7"))
    theirs = process(
        1,
        "GPU-0",
        user="bob",
        name="prog",
        command="/hidden-folder/prog --patient=mueller77",
        cgroup=CGROUP.format(4711),
    )
    # A program may write its arguments into its name.
    titled = process(2, "GPU-1", user="bob", name="prog: hidden-title mueller77", command="x", cgroup="/hidden-group")
    own = process(3, "GPU-2", user="carol", name="mine", command="mine --own-secret", cgroup=CGROUP.format(12))
    fleet.line("gpu1", snapshot(gpu(0), gpu(1), gpu(2), processes=[theirs, titled, own]))
    fleet.place(Place(name="gpu2"))
    named = process(4, "GPU-9", user="bob", name="before")
    fleet.line("gpu2", snapshot(gpu(0, uuid="GPU-9"), processes=[named]))
    fleet.line("gpu2", update(0, 1, 1001.0, processes={"name": ["updated hidden-title mueller77"]}))
    fleet.book({("gpu1", "0"): Booked("r1", "bob", 0.0, 9000.0, comment="hidden-comment mueller77")}, {})
    fleet.tick()
    return fleet


@pytest.fixture
def given_to_matcher(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """All texts in which somebody looked for something."""
    given: list[str] = []
    for name in ("contains", "equals"):
        compare = getattr(matcher, name)

        def noted(text: str | None, word: str, compare=compare) -> bool:
            given.append(text or "")
            return compare(text, word)

        monkeypatch.setattr(matcher, name, noted)
    yield given


@pytest.mark.parametrize("sight", LEVELS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_only_visible_text_is_looked_at(question: str, sight: Sight, given_to_matcher: list[str]):
    fleet = _fleet()
    for _ in range(2):
        # The first makes what the second finds made.
        Search(fleet, parse(question, "carol", sight)).all()
    assert given_to_matcher, "nothing was compared"
    for hidden in HIDDEN.get(sight.level, ()):
        assert not [text for text in given_to_matcher if hidden in text], hidden


@pytest.mark.parametrize(
    "question", ["mueller77", "bob", "user:bob", "job:4711", "reserved:bob", "group:lab", "rack:r7"]
)
def test_there_is_no_other_way_to_compare(question: str, monkeypatch: pytest.MonkeyPatch):
    assert len(Search(_fleet(), parse(question)).all())
    for name in ("contains", "equals"):
        monkeypatch.setattr(matcher, name, lambda *_: False)
    assert not len(Search(_fleet(), parse(question)).all())


@pytest.mark.parametrize("sight", LEVELS, ids=str)
@pytest.mark.parametrize("user", ["bob", "carol", None])
def test_the_texts_are_those_of_the_process_as_it_is_seen(sight: Sight, user: str | None):
    whole = Process(user=user, name="a/prog b", command="/opt/x y", cgroup=CGROUP.format(4711))
    for one in (whole, Process(user=user, command="/opt/x y"), Process(user=user)):
        shown = seen_one(one, sight)
        expected = (shown.user, shown.command, shown.name, job_of(shown.cgroup))
        assert seen_texts(one, one.name, sight) == expected


def test_what_is_one_s_own_is_found():
    fleet = _fleet()
    for level in ("names", "anonymous"):
        for question in ("own-secret", "job:12", "user:carol"):
            assert len(Search(fleet, parse(question, None, Sight(level, frozenset({"carol"})))).all()) == 1, question
            expected = 1 if level == "names" and question != "own-secret" else 0
            assert len(Search(fleet, parse(question, None, Sight(level))).all()) == expected, question
