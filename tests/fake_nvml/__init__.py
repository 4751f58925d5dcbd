"""A fake NVIDIA driver library: builds it from the C sources beside this file and writes its description."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .nodes import Process, a100_mig_node, h100_node, rtx3090_node

__all__ = ["FakeNvml", "NoCompilerError", "Process", "a100_mig_node", "h100_node", "rtx3090_node"]

SOURCES = Path(__file__).resolve().parent
BUILDS = SOURCES.parent.parent / "build" / "fake_nvml"
LIBRARY = "libnvidia-ml.so.1"
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-fvisibility=hidden", "-shared")


class NoCompilerError(RuntimeError):
    """There is no gcc on this machine, so the library cannot be built."""


class FakeNvml:
    """One fake driver: its library, and the description that programs started with its environment will see."""

    def __init__(self, folder: Path, without: Sequence[str] = ()) -> None:
        """`without` names functions that the library shall lack altogether, as an old driver's does."""
        self.library = build(without)
        self.description = folder / "nvml.txt"
        self.since = time.time()

    def describe(self, text: str) -> None:
        """Replace the description at once, so that no reader ever sees half of it.

        Counters grow from the moment this object was made, unless the text says since when.
        """
        if not any(line.split()[:1] == ["since"] for line in text.splitlines()):
            text = f"{text}\nsince {self.since:.3f}\n"
        with tempfile.NamedTemporaryFile("w", dir=self.description.parent, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(self.description)

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """An environment in which programs find this driver; `base` is the test's own unless given."""
        environment = dict(os.environ if base is None else base)
        others = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{self.library.parent}:{others}" if others else str(self.library.parent)
        environment["FAKE_NVML"] = str(self.description)
        return environment


def build(without: Sequence[str] = ()) -> Path:
    """The library for these sources, built unless it is there already; several processes may ask at once."""
    sources = sorted(SOURCES.glob("*.[ch]"))
    script = exports(without)
    digest = hashlib.sha256(repr((FLAGS, script)).encode())
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    folder = BUILDS / digest.hexdigest()[:16]
    if not (folder / LIBRARY).exists():
        BUILDS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILDS) as scratch:
            made = Path(scratch) / "made"
            made.mkdir()
            compile_into(made, [str(source) for source in sources if source.suffix == ".c"], script)
            try:
                made.rename(folder)
            except OSError:
                # Another process was faster; what it built is the same.
                if not (folder / LIBRARY).exists():
                    raise
    return folder / LIBRARY


def exports(without: Sequence[str]) -> str:
    """A linker script that shows every NVML function but those named."""
    hidden = "".join(f"{name}; " for name in sorted(without))
    return "{ global: nvml*; local: " + hidden + "*; };\n"


def compile_into(folder: Path, sources: list[str], script: str) -> None:
    compiler = shutil.which("gcc")
    if compiler is None:
        raise NoCompilerError("gcc is missing: the fake NVML library is built with it")
    (folder / "exports").write_text(script, encoding="utf-8")
    link = [f"-Wl,-soname,{LIBRARY}", f"-Wl,--version-script={folder / 'exports'}"]
    command = [compiler, *FLAGS, *link, "-o", str(folder / LIBRARY), *sources, "-lpthread", "-lm"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise RuntimeError(f"the fake NVML library does not compile:\n{ran.stderr}")
