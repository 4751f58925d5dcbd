"""The probe as one zip: booted from memory over a connection, or kept as a file on a node."""

import importlib.util
import io
import shlex
import zipfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock

import gpulse_probe
from gpulse.errors import BundleError
from gpulse.transport.binding import cut
from gpulse.transport.squeeze import squeeze, without_meanings
from gpulse_probe.nvidia.names import NUMBERS, STRUCTURES

# One line for sh, bash, dash, tcsh and fish alike, so without ' ! \ and newline. It reads exactly N bytes with
# os.read, so that what follows on standard input is left alone, and runs the zip's first entry, which is
# stored as it is: its text begins after a head of 30 bytes and its name, its size stands at byte 18.
FIRST_ENTRY = "boot.py"
BOOT = (
    "import os,sys;n=int(sys.argv[1]);b=bytearray();"
    "[b.extend(os.read(0,n-len(b))or sys.exit(9))for _ in iter(lambda:len(b)<n,False)];"
    f'exec(bytes(b[{30 + len(FIRST_ENTRY)}:{30 + len(FIRST_ENTRY)}+int.from_bytes(b[18:22],"little")]))'
)
# What only the agent needs: files, or folders that end with /. The bundle travels to every node anew at each
# connection, so it goes without them.
AGENT_ONLY = (
    "agent.py",
    "backlog.py",
    "chance.py",
    "connection.py",
    "ending.py",
    "errand.py",
    "fingerprint.py",
    "get_status.py",
    "http_request.py",
    "http_server.py",
    "hub_address.py",
    "link.py",
    "log.py",
    "merging.py",
    "outlets/drop.py",
    "outlets/push.py",
    "outlets/serve.py",
    "refusal.py",
    "request_parser.py",
    "service/",
    "tls.py",
    "tokens.py",
    "trust.py",
    "upgrade.py",
    "uplink.py",
    "websocket.py",
)
# Isolated: nothing is imported from the folder it happens to run in, nor from where PYTHONPATH leads, be it an empty
# entry, which is that folder again: people have files called struct.py in their homes.
_ISOLATED = "-I"
_RUN_AS_FILE = "import sys\nfrom gpulse_probe.__main__ import main\n\nsys.exit(main())\n"
# The same sources make the same bytes, so that a version can be told by its content.
_making = Lock()
_SCHEMA = "gpulse_probe/schema.py"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Bundle:
    data: bytes

    def command(self, *arguments: str, python: str = "python3") -> str:
        """The shell command that boots the bundle from its standard input."""
        return " ".join([python, _ISOLATED, "-c", f"'{BOOT}'", str(len(self.data)), *map(shlex.quote, arguments)])


def make_bundle() -> Bundle:
    """The probe of this installation, with NVIDIA's binding as far as it is used. Made once, whoever asks first."""
    with _making:
        return _made(without=AGENT_ONLY)


def make_agent() -> Bundle:
    """The same with all that the agent needs: what stays on a node as agent.pyz."""
    with _making:
        return _made(without=())


@cache
def _made(without: tuple[str, ...]) -> Bundle:
    package = Path(gpulse_probe.__file__).parent
    paths = [(path, path.relative_to(package).as_posix()) for path in sorted(package.rglob("*.py"))]
    sources = {
        f"gpulse_probe/{name}": squeeze(path.read_text("utf-8"))
        for path, name in paths
        if name not in without and not name.startswith(tuple(entry for entry in without if entry.endswith("/")))
    }
    sources[_SCHEMA] = without_meanings(sources[_SCHEMA])
    boot = sources.pop("gpulse_probe/boot.py")
    binding = cut(_binding_source(), {*NUMBERS, *STRUCTURES})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        _add(archive, FIRST_ENTRY, boot, zipfile.ZIP_STORED)
        _add(archive, "__main__.py", _RUN_AS_FILE)
        _add(archive, "pynvml.py", binding)
        for name, source in sources.items():
            _add(archive, name, source)
    return Bundle(packed.getvalue())


def _add(archive: zipfile.ZipFile, name: str, text: str, method: int = zipfile.ZIP_DEFLATED) -> None:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    archive.writestr(entry, text.encode(), compress_type=method, compresslevel=9)


def _binding_source() -> str:
    found = importlib.util.find_spec("pynvml")
    if found is None or not found.origin:
        raise BundleError("pynvml is not installed, so nodes cannot be read by NVML; run: pip install nvidia-ml-py")
    return Path(found.origin).read_text("utf-8")
