"""A command that only asks a hub starts quickly: it does not load what the hub itself is made of."""

import subprocess
import sys

from tests.patience import PATIENCE_SECONDS

HEAVY = ["alembic", "asyncssh", "authlib", "cryptography", "numpy", "pydantic", "sqlalchemy", "starlette", "uvicorn"]
SCRIPT = f"""
import contextlib, io, sys
sys.argv = ["gpulse", "free", "--help"]
from gpulse.cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
print([name for name in {HEAVY} if name in sys.modules])
"""


def test_what_a_command_does_not_load():
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )
    assert ran.stdout == "[]\n"
