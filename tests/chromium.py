"""The machine's own Chromium, for tests that only want to know what a page becomes in it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import PATIENCE_SECONDS

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def dom_of(address: str, folder: Path) -> str:
    """The document once it is loaded; `folder` becomes the browser's home."""
    command = [*_command(folder), "--dump-dom", address]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True, env=_environment(folder)
    )
    return ran.stdout


@contextmanager
def opened(address: str, folder: Path) -> Iterator[None]:
    """The page is open until the end of the block."""
    # A debugging port keeps a headless browser from ending at once.
    command = [*_command(folder), "--remote-debugging-port=0", address]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=_environment(folder)) as browser:
        try:
            yield
        finally:
            browser.terminate()
            browser.wait(PATIENCE_SECONDS)


def _command(folder: Path) -> list[str]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is missing")
    return [chromium, *_OPTIONS, f"--user-data-dir={folder / 'browser'}"]


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder)}
