"""The commands people type: one file per command."""

import sys


def main() -> None:
    """`gpulse …`. The probe, and the agent that is one, start before anything else is loaded: they must stay small."""
    if sys.argv[1:2] == ["probe"]:
        from gpulse.cli import probe

        sys.exit(probe.run(sys.argv[2:]))
    if sys.argv[1:2] == ["agent"] and sys.argv[2:3] in (["push"], ["serve"], ["drop"]):
        from gpulse.cli import probe

        sys.exit(probe.run_agent(sys.argv[2:]))
    from gpulse.cli.commands import app

    app()
