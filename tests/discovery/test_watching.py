"""Sources of nodes as one list that follows its files."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator

import pytest

from gpulse.config import Config, Hub, load
from gpulse.discovery import HostFile, Static, Target, sources, watch
from gpulse.discovery.watching import RETRY_LOOKS
from gpulse.errors import DiscoveryError, HostsError
from tests.patience import PATIENCE_SECONDS

EVERY = 0.01


async def following(lists: AsyncIterator[list[Target]], seconds: float = 20) -> list[str]:
    return [target.name for target in await asyncio.wait_for(anext(lists), seconds)]


async def quiet(lists: AsyncIterator[list[Target]]) -> bool:
    """Whether nothing new comes for twenty looks."""
    try:
        await asyncio.wait_for(anext(lists), 20 * EVERY)
    except TimeoutError:
        return True
    return False


async def until(said: list[str], count: int) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(said) < count:
            await asyncio.sleep(EVERY)


def test_a_file_is_followed(tmp_path):
    async def run() -> None:
        path = tmp_path / "nodes.txt"
        path.write_text("a\n")
        lists = watch([Static("x"), HostFile(path)], print, every=EVERY)
        assert await following(lists) == ["x", "a"]
        # Another size, here and below: the clock of a file system may tick every 4 ms only.
        path.write_text("bb\n")
        assert await following(lists) == ["x", "bb"]
        other = tmp_path / "new"
        other.write_text("cc\n")
        # As editors save: the same size, another file, an old time.
        os.utime(other, (1, 1))
        other.replace(path)
        assert await following(lists) == ["x", "cc"]

    asyncio.run(run())


def test_a_touch_changes_nothing(tmp_path):
    async def run() -> None:
        path = tmp_path / "nodes.txt"
        path.write_text("a\n")
        lists = watch([HostFile(path)], print, every=EVERY)
        await following(lists)
        path.touch()
        assert await quiet(lists)

    asyncio.run(run())


def test_stale_beats_partial(tmp_path):
    async def run() -> None:
        first, second = tmp_path / "first", tmp_path / "second"
        first.write_text("a\n")
        second.write_text("b\n")
        said: list[str] = []
        lists = watch([HostFile(first), HostFile(second)], said.append, every=EVERY)
        assert await following(lists) == ["a", "b"]
        first.unlink()
        second.write_text("cc\n")
        assert await following(lists) == ["a", "cc"]
        first.write_text("dd\n")
        assert await following(lists) == ["dd", "cc"]
        assert said == [f"{first}: cannot be read: No such file or directory; the nodes it listed before are kept"]

    asyncio.run(run())


def test_what_fails_is_tried_again_and_told_once():
    class Shaky:
        def __init__(self) -> None:
            self.readings = 0

        def targets(self, problem):  # noqa: ARG002 - nothing is wrong with a part
            self.readings += 1
            if self.readings < 3:
                raise DiscoveryError("nodes: stale file handle")
            return [Target("a", "a")]

        def mark(self) -> None:
            pass

        def close(self) -> None:
            pass

    async def run() -> None:
        said: list[str] = []
        shaky = Shaky()
        lists = watch([shaky], said.append, every=EVERY / RETRY_LOOKS)
        assert await following(lists) == []
        assert await following(lists) == ["a"]
        assert shaky.readings == 3
        assert said == ["nodes: stale file handle"]

    asyncio.run(run())


def test_a_node_of_two_sources_is_told_once(tmp_path):
    async def run() -> None:
        path = tmp_path / "nodes.txt"
        path.write_text("a\nb\n")
        said: list[str] = []
        lists = watch([Static("me@a"), HostFile(path)], said.append, {"b": "Bee"}, every=EVERY)
        targets = await anext(lists)
        assert [(target.name, target.user, target.display_name) for target in targets] == [
            ("a", "me", None),
            ("b", None, "Bee"),
        ]
        path.write_text("a\ncc\n")
        await following(lists)
        assert said == ["node a is listed twice: me@a is used, a is not"]

    asyncio.run(run())


def test_the_loop_is_not_blocked():
    turned = threading.Event()

    class Slow:
        def targets(self, problem):  # noqa: ARG002 - nothing is wrong
            return [Target("a", "a")] if turned.wait(PATIENCE_SECONDS) else []

        def mark(self) -> None:
            pass

        def close(self) -> None:
            pass

    async def run() -> None:
        reading = asyncio.create_task(following(watch([Slow()], print), 60))
        for _ in range(10):
            await asyncio.sleep(0.01)
        turned.set()
        assert await reading == ["a"]

    asyncio.run(run())


CONFIG = """
hub.port = 7070
[[nodes]]
hosts = "gpu[1-2]"
group = "lab"
[[host_files]]
path = "nodes.txt"
rack = "r1"
[[ini_files]]
path = "config.ini"
"""


def test_the_config_file_is_followed(tmp_path):
    async def run() -> None:
        path, listed, ini = tmp_path / "gpulse.toml", tmp_path / "nodes.txt", tmp_path / "config.ini"
        path.write_text(CONFIG)
        listed.write_text("a\n")
        ini.write_text("[common]\nuser = me\nhosts = i\n")
        said: list[str] = []
        config = load(path)
        lists = watch(sources(["x"], path, config), said.append, config.names, every=EVERY)
        targets = await anext(lists)
        assert [(target.name, target.user, target.group, target.rack) for target in targets] == [
            ("x", None, None, None),
            ("gpu1", None, "lab", None),
            ("gpu2", None, "lab", None),
            ("a", None, None, "r1"),
            ("i", "me", None, None),
        ]
        listed.write_text("bb\n")
        assert await following(lists) == ["x", "gpu1", "gpu2", "bb", "i"]
        path.write_text(CONFIG.replace("gpu[1-2]", "gpu[1-3]").replace("7070", "17071"))
        assert await following(lists) == ["x", "gpu1", "gpu2", "gpu3", "bb", "i"]
        assert said == [f"{path}: hub.port has changed; restart gpulse to apply it"]
        # A mistake: everything stays, and each mistake is told.
        path.write_text(CONFIG.replace("gpu[1-2]", "gpu[1-2").replace("group", "gruop"))
        waiting = asyncio.create_task(following(lists, 60))
        await until(said, 2)
        assert not (await asyncio.wait([waiting], timeout=20 * EVERY))[0]
        waiting.cancel()
        assert len(said) == 2
        assert said[1].count("\n") == 1
        assert said[1].endswith("the nodes it listed before are kept")

    asyncio.run(run())


def test_options_of_the_command_line_are_no_edits(tmp_path):
    async def run() -> None:
        path = tmp_path / "gpulse.toml"
        path.write_text("hub.port = 7070\nnodes = [{hosts = 'a'}]\n")
        said: list[str] = []
        running = Config(hub=Hub(port=7099))
        lists = watch(sources([], path, running), said.append, every=EVERY)
        assert await following(lists) == ["a"]
        path.write_text("hub.port = 7099\nnodes = [{hosts = 'bb'}]\n")
        assert await following(lists) == ["bb"]
        assert said == []
        path.write_text("hub.port = 7098\nhub.local = false\nnodes = [{hosts = 'c'}]\n")
        assert await following(lists) == ["c"]
        assert said == [f"{path}: hub.{key} has changed; restart gpulse to apply it" for key in ("port", "local")]

    asyncio.run(run())


def test_a_file_of_the_config_that_fails_keeps_its_nodes(tmp_path):
    async def run() -> None:
        path, listed = tmp_path / "gpulse.toml", tmp_path / "nodes.txt"
        path.write_text('[[host_files]]\npath = "nodes.txt"\n')
        listed.write_text("a\n")
        said: list[str] = []
        lists = watch(sources([], path, load(path)), said.append, every=EVERY)
        assert await following(lists) == ["a"]
        listed.unlink()
        path.write_text('[[host_files]]\npath = "nodes.txt"\n[[nodes]]\nhosts = "b"\n')
        assert await following(lists) == ["b", "a"]
        listed.write_text("cc\n")
        assert await following(lists) == ["b", "cc"]
        assert said == [f"{listed}: cannot be read: No such file or directory; the nodes it listed before are kept"]

    asyncio.run(run())


def test_a_text_that_names_no_host_is_told_at_once():
    with pytest.raises(HostsError, match="names no host"):
        sources(["a!a"], None, Config())
