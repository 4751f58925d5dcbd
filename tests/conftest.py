"""Skips that are told of, and are failures where nothing may be skipped (GPULSE_NO_SKIPS=1)."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NO_SKIPS = os.environ.get("GPULSE_NO_SKIPS") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if NO_SKIPS and report.skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
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


def pytest_terminal_summary(terminalreporter):
    if not terminalreporter.stats.get("skipped"):
        return
    line = subprocess.run([ROOT / "scripts/packages", "missing"], capture_output=True, text=True, check=True).stdout
    if line:
        terminalreporter.section("to run the skipped tests")
        terminalreporter.write_line(line.strip())
