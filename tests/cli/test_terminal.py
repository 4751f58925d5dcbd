"""The commands' only way to the terminal."""

import json

import pytest

from gpulse.cli import terminal
from gpulse.cli.hub_process import say
from gpulse.cli.tables import Column, Table
from gpulse.errors import NodeLost
from gpulse.transport.announcing import Announcing
from tests.cli.hub import gpulse
from tests.hostile_text import ATTACKS, FORGED
from tests.transport.recorder import Recorder


def clean_lines(text: str, count: int) -> None:
    lines = text.removesuffix("\n").split("\n")
    assert len(lines) == count
    for line in lines:
        assert line.isprintable()
        assert not line.startswith(FORGED)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_hub_says_in_one_line_why_a_node_is_lost(capsys: pytest.CaptureFixture[str], attack: str):
    """Close reasons, standard error of nodes and reason phrases of HTTP come this way."""
    announcing = Announcing(Recorder(), say)
    announcing.down("gpu1", str(NodeLost(f"its agent answers 500 {attack}", f"it said: {attack}")))
    announcing.line("gpu1", b"{}")
    clean_lines(capsys.readouterr().err, 2)


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_lines_tables_and_json(capsys: pytest.CaptureFixture[str], attack: str):
    terminal.tell(attack, attack)
    terminal.warn(attack)
    terminal.show(Table([Column(attack)], [[attack]], [attack]), None)
    terminal.show(Table([], [], [attack], attack), None)
    shown = capsys.readouterr()
    clean_lines(shown.out, 2 + 4 + 2)
    clean_lines(shown.err, 1)
    terminal.tell_record({"a": attack})
    shown = capsys.readouterr()
    assert json.loads(shown.out) == {"a": attack}
    clean_lines(shown.out, 3)


def test_mistakes_in_a_file_of_settings(tmp_path):
    (tmp_path / "gpulse.toml").write_text('[hub]\n"po\\u001b[2J\\u202ert" = 1\n"b\\u009bc" = 2\n')
    done = gpulse("doctor", "--config", str(tmp_path / "gpulse.toml"))
    assert done.returncode == 2
    clean_lines(done.stderr, 2)
