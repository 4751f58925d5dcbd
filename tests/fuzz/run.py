"""Runs one target with libFuzzer, guided by coverage: `python -m tests.fuzz.run TARGET FOLDER [LIBFUZZER'S OPTIONS]`.

In a process of its own, with a smaller limit of hosts than people have. The folder gets the corpus and what is found.
"""

import importlib
import sys
from pathlib import Path

import atheris

from tests.fuzz import json_changes

FEWER_HOSTS = 500


def main() -> None:
    program, name, folder, *options = sys.argv
    # Only what is imported in here is looked at.
    with atheris.instrument_imports(include=["gpulse", "gpulse_probe"]):
        target = importlib.import_module(f"tests.fuzz.targets.{name}")
        hosts = importlib.import_module("gpulse.config.hosts")
    # What a large range costs is seen elsewhere; here it would only take time.
    hosts.MOST_HOSTS = FEWER_HOSTS
    corpus, found, words = Path(folder, "corpus"), Path(folder, "found"), Path(folder, "words")
    corpus.mkdir()
    found.mkdir()
    for number, seed in enumerate(target.SEEDS):
        (corpus / str(number)).write_bytes(seed)
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.WORDS))
    changes = {"custom_mutator": json_changes.change} if target.SEEDS[0].startswith(b"{") else {}
    paths = [str(corpus), f"-dict={words}", f"-artifact_prefix={found}/"]
    atheris.Setup([program, *paths, *options], target.fuzz, **changes)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return word if "\\x" in word else word.replace("\\", "\\\\").replace('"', '\\"')


if __name__ == "__main__":
    main()
