"""Builds the page into the wheel. An editable install skips it: `make web` builds it then."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

# pip runs this without the folder on the path.
sys.path.insert(0, str(Path(__file__).parent))

from scripts import nodejs, web


class PageHook(BuildHookInterface):
    """Asks for PyPI's Node.js only where the system's will not do."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if nodejs.system() else [nodejs.WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del build_data
        if version != "editable":
            web.build()
