"""What all tests share: the fake driver, processes that are really there, and skips that are told of."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import hypothesis
import pytest

from tests.fake_nvml import FakeNvml, NoCompilerError
from tests.postgres import (
    bare_postgres_url,
    bare_url,
    postgres_database,
    postgres_server,
    postgres_url,
    records_url,
)

# Fixtures of others, for all tests.
__all__ = [
    "bare_postgres_url",
    "bare_url",
    "postgres_database",
    "postgres_server",
    "postgres_url",
    "records_url",
]

ROOT = Path(__file__).resolve().parent.parent
NO_SKIPS = os.environ.get("GPULSE_NO_SKIPS") == "1"
# No package can mend it: a container in which no namespace can be made, and so no systemd be run.
CANNOT = "this machine cannot "
# People search for new examples with every run; whether a change lands must not depend on luck.
hypothesis.settings.register_profile("people", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "people")
# A shell starts what it runs in the background deaf to Ctrl-C, and so would be what tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def make_fake(tmp_path: Path) -> Callable[..., FakeNvml]:
    """Makes fake drivers, as FakeNvml(folder, without) does; a test is skipped where that cannot be done."""

    def make(without: Sequence[str] = (), folder: Path = tmp_path) -> FakeNvml:
        try:
            return FakeNvml(folder, without)
        except NoCompilerError:
            pytest.skip("gcc is missing")

    return make


@pytest.fixture
def fake(make_fake: Callable[..., FakeNvml]) -> FakeNvml:
    """A fake driver; programs started with its environment see the cards it describes."""
    return make_fake()


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Three processes that are really there: peers leave out those that are not."""
    sleepers = [subprocess.Popen(["sleep", "300"]) for _ in range(3)]
    yield [sleeper.pid for sleeper in sleepers]
    for sleeper in sleepers:
        sleeper.kill()
        sleeper.wait()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes are not spelt out in a test's name: packed ones hold the clock, and two workers would not agree on it."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each has an id of its own: of several with the same, workers would run one and nobody would miss the others."""
    twice = [name for name, count in Counter(item.nodeid for item in items).items() if count > 1]
    if twice:
        raise pytest.UsageError(f"several tests have one id, and only one of them would be run: {', '.join(twice)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
    if NO_SKIPS and report.skipped and CANNOT not in str(reason):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and GPULSE_NO_SKIPS=1 forbids it: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    report = yield
    if NO_SKIPS and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} was skipped, and GPULSE_NO_SKIPS=1 forbids it: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter):
    """The last words of a run with skips: how to have none."""
    yield
    if not terminalreporter.stats.get("skipped"):
        return
    line = subprocess.run([ROOT / "scripts/packages", "missing"], capture_output=True, text=True, check=True).stdout
    if line:
        terminalreporter.section("to run the skipped tests")
        terminalreporter.write_line(line.strip())
