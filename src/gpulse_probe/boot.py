"""First piece of the bundle: runs the probe from a zip that was read from standard input, nothing on disk.

BOOT (see gpulse.transport.bundle) has read the zip into `b` and runs this file's text, which must stay
valid in any Python 3 so that one too old can say so. Zips are taken apart by hand: the zipfile module
would cost 2 MB of memory on every node.
"""

import struct
import sys
import zlib
from importlib.machinery import ModuleSpec

OLDEST = (3, 6)
EXIT_TOO_OLD = 8
# Ends whatever login scripts print; snapshots begin on the next line.
START_MARKER = "--gpulse-probe-start--"


def entries(archive):
    """The sources in a zip: {path: (method, compressed bytes)}."""
    found = {}
    end = archive.rfind(b"PK\x05\x06")
    count, _size, offset = struct.unpack_from("<HLL", archive, end + 10)
    for _ in range(count):
        method, size, name_size, extra_size, note_size, start = struct.unpack_from("<10xH8xL4xHHH8xL", archive, offset)
        name = bytes(archive[offset + 46 : offset + 46 + name_size]).decode("ascii")
        offset += 46 + name_size + extra_size + note_size
        start += 30 + sum(struct.unpack_from("<HH", archive, start + 26))
        found[name] = (method, bytes(archive[start : start + size]))
    return found


class Importer(object):
    """Finds modules among the entries; after those that the node has itself, for which nothing changes."""

    def __init__(self, archive):
        # As zipimport has it: an agent that installs itself needs the whole.
        self.archive = archive
        self.sources = entries(archive)

    def find_spec(self, name, _path=None, _target=None):
        path = name.replace(".", "/")
        for place, package in ((path + "/__init__.py", True), (path + ".py", False)):
            if place in self.sources:
                return ModuleSpec(name, self, origin=place, is_package=package)
        return None

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        place = module.__spec__.origin
        method, data = self.sources[place]
        source = zlib.decompress(data, -15) if method else data
        # Without docstrings (optimize 2), which nobody reads there.
        exec(compile(source, "gpulse-probe/" + place, "exec", 0, True, 2), module.__dict__)  # noqa: S102 - its purpose


def start(archive, arguments):
    if sys.version_info < OLDEST:
        sys.stderr.write("gpulse: Python %d.%d is too old, the probe needs %d.%d\n" % (sys.version_info[:2] + OLDEST))
        return EXIT_TOO_OLD
    # First in line: another gpulse_probe or pynvml on the node may be of another version.
    sys.meta_path.insert(0, Importer(archive))
    from gpulse_probe.__main__ import main

    return main(arguments, greeting="\n" + START_MARKER + "\n")


if "b" in globals():
    sys.exit(start(globals().pop("b"), sys.argv[2:]))
