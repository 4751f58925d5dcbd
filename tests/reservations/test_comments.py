"""comments.json of other monitors: whatever is in one, every slot is read or said why not, with its line."""

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import RequestError
from gpulse.reservations import comments
from gpulse.reservations.comments import Entry, decode, read, write
from gpulse.reservations.comments_text import MOST_SLOTS, without_comments
from gpulse.reservations.dates import parse_moment
from gpulse.reservations.model import Place, Reservation

BERLIN = ZoneInfo("Europe/Berlin")

# As in the wild: comments where JSON has none, empty slots, a comma too many.
FILE = """{
  "gpu01": [  // you could also use a dictionary
    {  // GPU 0
      "name": "sclaus",
      "date": "2026-12-01 18:00",
      "comment": "see http://lab.example/plan // not a comment"
    },
    {}, null,
    { "name": "pnoel", "date": "2018-08-01 00:00", "comment": "booked by Père Noël" },
  ],
  /* these are
     shared */
  "gpu02": {"23": {"name": "ann", "date": "2026-12-02 09:00", "comment": "a \\"quoted\\" // word"}, "0": {"name": ""}},
  "gpu03": []
}
"""


def slots(text: str) -> list[tuple[int, str, str]]:
    return [(entry.line, entry.node, entry.index) for entry in read(text)]


def refused(text: str) -> str:
    with pytest.raises(RequestError) as caught:
        read(text)
    assert (caught.value.status, caught.value.code) == (422, "bad_comments")
    assert "nothing was changed" in caught.value.detail
    return caught.value.message


def test_every_slot_has_its_line_and_its_index():
    assert slots(FILE) == [
        (3, "gpu01", "0"),
        (8, "gpu01", "1"),
        (8, "gpu01", "2"),
        (9, "gpu01", "3"),
        (13, "gpu02", "23"),
        (13, "gpu02", "0"),
    ]


def test_a_file_of_very_many_entries():
    assert len(slots('{"a": [' + "0," * MOST_SLOTS + "]}")) == MOST_SLOTS
    assert "line 3 of the file: the file has more than 50,000 entries" in refused(
        '{"a":\n [' + "0," * MOST_SLOTS + "\n0]}"
    )


def test_what_is_in_quotes_is_no_comment():
    first, _, _, noel, ann, _ = read(FILE)
    assert first == Entry(3, "gpu01", "0", "sclaus", "2026-12-01 18:00", "see http://lab.example/plan // not a comment")
    assert (noel.person, noel.comment) == ("pnoel", "booked by Père Noël")
    assert ann.comment == 'a "quoted" // word'


def test_comments_leave_everything_in_its_place():
    bare = without_comments(FILE)
    assert len(bare) == len(FILE)
    assert [at for at, one in enumerate(bare) if one == "\n"] == [at for at, one in enumerate(FILE) if one == "\n"]
    assert "you could" not in bare
    assert "shared" not in bare


@pytest.mark.parametrize(
    "empty", ["null", "{}", "[]", '""', '{"name": "", "date": "", "comment": ""}', '{"name": null}']
)
def test_slots_that_nobody_has(empty):
    assert [entry.empty for entry in read(f'{{"gpu01": [{empty}]}}')] == [True]


@pytest.mark.parametrize(
    ("slot", "trouble"),
    [
        ('{"name": "ann"}', "it has no date"),
        ('{"date": "2026-12-01 18:00"}', "it has no name"),
        ('{"user": "ann"}', "it has neither a name nor a date"),
        ('"ann"', "it is no reservation"),
        ("7", "it is no reservation"),
        ("[[]]", "it is no reservation"),
        ('{"name": "ann", "name": "bob", "date": "2026-12-01"}', 'it has "name" twice'),
        (json.dumps({"name": "a" * 201, "date": "2026-12-01"}), "its name is longer than 200"),
        (json.dumps({"name": "ann", "date": "2026-12-01", "comment": "a" * 2001}), "its comment is longer than 2000"),
    ],
)
def test_slots_that_cannot_be_read_say_why(slot, trouble):
    (entry,) = read(f'{{"gpu01": [{slot}]}}')
    assert entry.trouble.startswith(trouble)
    assert not entry.empty


def test_nothing_is_lost_that_is_there_twice():
    text = (
        '{"a": [{"name": "x", "date": "d"}], "a": {"0": {"name": "y", "date": "d"}, "0": {"name": "z", "date": "d"}}}'
    )
    assert [(entry.index, entry.person) for entry in read(text)] == [("0", "x"), ("0", "y"), ("0", "z")]


def test_of_a_gpu_that_is_there_twice_the_last_counts():
    """As for whoever else reads such a file."""
    one = '{"name": "%s", "date": "2026-12-01 18:00"}'
    x, y, z, w = (one % who for who in "xyzw")
    text = f'{{"a": {{"7": {x},\n"7": {{}},\n"1": {y},\n"7": {z}}}, "A": {{"7": {w}}}}}'
    again = "the same GPU stands there again, in line 4, and that counts"
    assert [(entry.person, entry.trouble) for entry in read(text)] == [
        ("x", again), ("", ""), ("y", ""), ("z", ""), ("w", "")
    ]  # fmt: skip
    # Also where that says that nobody has it.
    assert [(one.trouble != "", one.empty) for one in read(f'{{"a": {{"0": {x}, "0": null}}}}')] == [
        (True, False), (False, True)
    ]  # fmt: skip


def test_a_host_without_a_list_is_told():
    (entry,) = read('{"gpu01": "ann"}')
    assert (entry.node, entry.index) == ("gpu01", "")
    assert entry.trouble
    assert read('{"gpu01": null}')[0].empty


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1 of the file: a dictionary of hosts should begin here"),
        ("[]", "line 1 of the file: a dictionary of hosts should begin here"),
        ('{\n"gpu01": [\n{"name": "ann",,}]}', "line 3 of the file: "),
        ('{\n"gpu01": [', "line 2 of the file: the file ends before a ]"),
        ('{\n"gpu01" [', "line 2 of the file: a colon should follow the name of a host"),
        ("{\n\ngpu01: []}", "line 3 of the file: the name of a host should stand here, in quotes"),
        ('{"gpu01": {0: {}}}', "line 1 of the file: the index of a GPU should stand here, in quotes"),
        ('{}\n{"gpu01": []}', "line 2 of the file: nothing should follow here"),
        ('{"gpu01": ["ann]}\n// "', "line 2 of the file: the file ends before a ]"),
        ('{"gpu01": [' + "[" * 100_000, "line 1 of the file: "),
        ('{"gpu01": [' + "9" * 5000 + "]}", "line 1 of the file: "),
    ],
)
def test_a_broken_file_says_where(text, message):
    assert refused(text).startswith(message)


class TestBytes:
    TEXT = '{"gpu01": [{"name": "pnoel", "date": "2026-12-01", "comment": "Père Noël – 5 €"}]}'

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
    def test_of_any_origin(self, encoding):
        assert decode(self.TEXT.encode(encoding)) == self.TEXT

    def test_latin_1(self):
        assert decode("Père Noël\x81".encode("latin-1")) == "Père Noël\x81"

    def test_of_two_origins_in_one_file(self):
        assert decode("é\n".encode() + "é\n".encode("latin-1") + "日本".encode()) == "é\né\n日本"

    def test_what_no_database_keeps_is_made_visible(self):
        (entry,) = read('{"gpu01": [{"name": "a\\u0000b", "date": "2026-12-01", "comment": "\\ud800"}]}')
        assert "\0" not in entry.person
        entry.comment.encode("utf-8")

    @given(st.binary(max_size=200))
    def test_any_bytes_are_read_or_refused(self, data):
        try:
            read(decode(data))
        except RequestError as error:
            assert error.message.startswith("line ")


def reservation(person: str, *places: str, start: float, end: float, **fields: object) -> Reservation:
    named = tuple(Place(*place.split(":")) for place in places)
    return Reservation(
        id="0123456789ab",
        person=person,
        maker=person,
        places=named,
        start=start,
        end=end,
        made_at=0.0,
        revision=1,
        **fields,
    )


class TestWriting:
    NOW = datetime(2026, 11, 18, 10, 30, tzinfo=BERLIN).timestamp()
    DAY = 86400.0

    def test_those_of_now(self):
        end = datetime(2026, 12, 1, 18, tzinfo=BERLIN).timestamp()
        text = write(
            [
                reservation(
                    "ann", "gpu02:10", "gpu02:9", "gpu01:0.2", start=self.NOW - 1, end=end, comment='Père "x" //'
                ),
                reservation("bob", "gpu03:0", start=self.NOW + 1, end=end),
                reservation("cyd", "gpu03:1", start=self.NOW - self.DAY, end=self.NOW),
                reservation("dan", "gpu03:2", start=self.NOW - 9, end=end, ended_at=self.NOW - 1, ending="ended"),
            ],
            self.NOW,
            BERLIN,
        )
        slot = {"name": "ann", "date": "2026-12-01 18:00", "comment": 'Père "x" //'}
        assert json.loads(text) == {"gpu01": {"0.2": slot}, "gpu02": {"9": slot, "10": slot}}
        assert list(json.loads(text)["gpu02"]) == ["9", "10"]
        assert "Père" in text

    def test_those_to_come_can_be_told(self):
        later = reservation("bob", "gpu03:0", start=self.NOW + 1, end=self.NOW + 9)
        now = reservation("ann", "gpu03:1", start=self.NOW, end=self.NOW + 9)
        assert comments.unwritten([later, now], self.NOW) == [later]

    def test_nobody_has_anything(self):
        assert json.loads(write([], self.NOW, BERLIN)) == {}

    @given(
        st.text(min_size=1, max_size=20).filter(lambda name: name.strip() == name and " ".join(name.split()) == name),
        st.text(max_size=60).map(str.strip),
        st.integers(1, 900 * 86400),
    )
    def test_what_is_written_reads_back(self, person, comment, seconds):
        person, comment = (text.encode("utf-8", "replace").decode().replace("\0", "?") for text in (person, comment))
        one = reservation(person, "gpu01:3", start=self.NOW, end=self.NOW + seconds, comment=comment)
        (entry,) = read(write([one], self.NOW, BERLIN))
        assert (entry.person, entry.comment, entry.index) == (person, comment, "3")
        at = parse_moment(entry.until, datetime.fromtimestamp(self.NOW, BERLIN)).at
        assert 0 <= at.timestamp() - one.end < 60

    @pytest.mark.parametrize(("hour", "written"), [(0, "2027-10-31 02:30 +0200"), (1, "2027-10-31 02:30 +0100")])
    def test_an_hour_that_comes_twice(self, hour, written):
        end = datetime(2027, 10, 31, hour, 30, tzinfo=UTC)
        one = reservation("ann", "gpu01:3", start=self.NOW, end=end.timestamp())
        (entry,) = read(write([one], self.NOW, BERLIN))
        assert entry.until == written
        assert parse_moment(entry.until, datetime.now(BERLIN)).at.astimezone(UTC) == end
