"""The one door to terminals and logs."""

import io
import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.clean_text import CleanFormatter, clean, clean_json, log_to_stderr

NASTY = "a\x1b]0;owned\x07\x9b2J\u202e\u2066\u2028\u0085\x7f\udcffb\r\nc"
ANY = st.text(st.characters(codec=None, categories=None, exclude_categories=()), max_size=60)


def test_what_a_terminal_obeys_is_written_out():
    assert clean(NASTY) == r"a\x1b]0;owned\x07\x9b2J\u202e\u2066  \x7f\xffb  c"
    assert clean("Zoë 日本語 ⚡ 100 %") == "Zoë 日本語 ⚡ 100 %"


@given(ANY)
def test_any_text_prints_and_is_cleaned_once(text):
    assert clean(text).isprintable()
    assert clean(clean(text)) == clean(text)


@given(
    st.recursive(
        st.text(max_size=20) | st.integers() | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_is_the_same_data_and_prints(value):
    for indent in (None, 2):
        text = clean_json(json.dumps(value, ensure_ascii=False, indent=indent))
        assert json.loads(text) == value
        assert text.replace("\n", "").isprintable()


def test_json_of_a_stranger_does_no_harm():
    """What is printed may not even be JSON."""
    assert clean_json('{"a":"\x1b[2J\x9b\u202e\U000e0041"}\r\n') == '{"a":"\\u001b[2J\\u009b\\u202e\\udb40\\udc41"} \n'


def test_a_log_record_is_one_line_and_its_traceback_never_begins_one():
    try:
        raise ValueError(NASTY + "\ngpulse: all is well")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "f", 1, "node %s fell", (NASTY,), sys.exc_info())
    lines = CleanFormatter().format(record).split("\n")
    assert lines[0] == f"gpulse: node {clean(NASTY)} fell"
    assert len(lines) > 3
    assert all(line.startswith("  ") and line.isprintable() for line in lines[1:])


def test_what_libraries_log_goes_through_it(monkeypatch: pytest.MonkeyPatch):
    shown = io.StringIO()
    monkeypatch.setattr(sys, "stderr", shown)
    before = logging.root.handlers[:], logging.root.level
    try:
        log_to_stderr()
        logging.getLogger("asyncssh").warning("Received disconnect: %s", NASTY)
        logging.getLogger("asyncssh").info("nobody asked")
    finally:
        for handler in logging.root.handlers[:]:
            logging.root.removeHandler(handler)
        for handler in before[0]:
            logging.root.addHandler(handler)
        logging.root.setLevel(before[1])
    assert shown.getvalue() == f"gpulse: Received disconnect: {clean(NASTY)}\n"
