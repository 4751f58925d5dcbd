"""The commands people type: one file per command."""

import sys


def main() -> None:
    """`gpulse …`. The probe is started before anything else is loaded: it must stay small."""
    if sys.argv[1:2] == ["probe"]:
        from gpulse.cli import probe

        sys.exit(probe.run(sys.argv[2:]))
    from gpulse.cli.commands import app

    app()
