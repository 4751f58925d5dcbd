"""The pictures of the docs can be taken: what the script presses and cuts out is on the page."""

import struct
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from scripts.screenshots import SHOTS, Shot, stand, take
from tests.hub.running import RunningHub

PARTS = [shot for shot in SHOTS if shot.part is not None]


@pytest.mark.parametrize("shot", PARTS, ids=lambda shot: shot.name)
def test_a_part_of_the_page_is_found(shot: Shot, browser: Browser, demo: RunningHub, tmp_path: Path):
    file = take(browser, shot, stand(demo.url), tmp_path, settle_ms=0)
    width, height = struct.unpack(">II", file.read_bytes()[16:24])
    assert 200 < width <= shot.width
    assert 40 < height <= 2 * shot.height


def test_a_phone_has_twice_the_pixels(browser: Browser, demo: RunningHub, tmp_path: Path):
    phone = next(shot for shot in SHOTS if shot.name == "phone")
    file = take(browser, phone, stand(demo.url), tmp_path, settle_ms=0)
    assert struct.unpack(">II", file.read_bytes()[16:24]) == (2 * phone.width, 2 * phone.height)
