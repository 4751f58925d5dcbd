"""Every decoder under libFuzzer, guided by coverage; for longer, GPULSE_FUZZ_SECONDS may be set.

What is found is printed as Python: it belongs into the target's SEEDS and into a test of the decoder.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.targets import TARGETS

SECONDS = int(os.environ.get("GPULSE_FUZZ_SECONDS", "2"))
RUNS = 20_000 if SECONDS <= 10 else -1
ROOT = Path(__file__).resolve().parents[2]
OPTIONS = [
    "-seed=1",
    f"-runs={RUNS}",
    f"-max_total_time={SECONDS}",
    "-max_len=8192",
    "-len_control=0",
    # No single input may take longer, nor all of them more memory.
    "-timeout=10",
    "-rss_limit_mb=600",
]


def test_every_target_is_listed():
    folder = ROOT / "tests" / "fuzz" / "targets"
    named = [path.stem for path in folder.glob("*.py") if "def fuzz(" in path.read_text()]
    assert sorted(named) == list(TARGETS)


@pytest.mark.timeout(SECONDS + 90)
@pytest.mark.parametrize("name", TARGETS)
def test_nothing_breaks(name, tmp_path):
    # Nobody's own files: groups of hosts, keys and the like are looked for at home.
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    ran = subprocess.run(
        # By a shell in between: a program's peak of memory begins with that of the process it was forked from.
        ["/bin/sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", "tests.fuzz.run", name, tmp_path, *OPTIONS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS + 80,
        check=False,
    )
    inputs = [f"{path.name}: {path.read_bytes()!r}" for path in (tmp_path / "found").glob("*")]
    assert ran.returncode == 0, "\n".join([*inputs, ran.stdout[-3000:], ran.stderr[-1000:]])
    assert "Done" in ran.stderr
