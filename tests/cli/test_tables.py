"""Tables are aligned, fit their width, and cannot be made to send commands to a terminal."""

import re

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gpulse.clean_text import clean
from gpulse.cli.tables import Column, Span, Table, draw

COLUMNS = (Column("NAME"), Column("COUNT", right=True), Column("MODEL", spare=1), Column("NOTE"))


def test_columns_are_aligned_left_and_right():
    table = Table(COLUMNS, [("gpu1", "8", "H100", "fine"), ("gpu10", "16", "T4", "")], ["2 nodes"])
    assert draw(table, None, colour=False) == [
        "NAME   COUNT  MODEL  NOTE",
        "gpu1       8  H100   fine",
        "gpu10     16  T4",
        "",
        "2 nodes",
    ]


def test_wide_characters_take_two_cells():
    table = Table((Column("WHO"), Column("N", right=True)), [("山田", "1"), ("ann", "2")])
    assert draw(table, None, colour=False) == ["WHO   N", "山田  1", "ann   2"]


def test_a_narrow_table_leaves_out_spare_columns_then_cuts_the_last():
    table = Table(COLUMNS, [("gpu1", "8", "H100 80G", "Connection refused by the host")])
    assert draw(table, 30, colour=False) == ["NAME  COUNT  NOTE", "gpu1      8  Connection refus…"]
    assert draw(table, 60, colour=False)[1] == "gpu1      8  H100 80G  Connection refused by the host"


def test_colours_surround_text_only():
    table = Table((Column("STATE"), Column("NOTE")), [(Span("free", "green"), [Span("a", "red"), Span("b")])])
    assert draw(table, None, colour=True)[1] == "\x1b[32mfree\x1b[0m   \x1b[31ma\x1b[0mb"


def test_a_low_screen_keeps_the_first_rows_and_the_sums():
    table = Table((Column("N"),), [(str(row),) for row in range(100)], ["100 rows"])
    assert draw(table, None, colour=False, height=6) == ["N", "0", "1", "… 98 more", "", "100 rows"]


def test_without_rows_it_says_why():
    assert draw(Table(COLUMNS, [], [], "no node matches"), 80, colour=True) == ["no node matches"]


def test_control_characters_do_not_reach_the_terminal():
    assert clean("a\x1b[2Jb\tc\r\n\u202ed\x9b") == r"a\x1b[2Jb c  \u202ed\x9b"


@given(
    st.lists(st.tuples(st.text(), st.text(), st.text(), st.text()), min_size=1, max_size=5),
    st.integers(20, 90) | st.none(),
    st.booleans(),
)
def test_any_text_fits_and_obeys(rows, width, colour):
    lines = draw(Table(COLUMNS, rows, ["sum"]), width, colour)
    assert len(lines) == len(rows) + 3
    for line in lines:
        bare = re.sub("\x1b\\[[0-9]+m", "", line)
        assert "\x1b" not in bare
        assert "\n" not in bare
        assert width is None or cell_len(bare) <= width
