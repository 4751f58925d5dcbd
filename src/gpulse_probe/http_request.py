"""One request to the hub, to its end. For errands: http.client and all it loads cost 6 MB, in a child for a moment."""

import http.client
from collections import namedtuple

from gpulse_probe import __version__
from gpulse_probe.trust import SYSTEM

# headers: by lower-case name.
Answer = namedtuple("Answer", "status headers body")
_SECONDS = 20.0


class RequestFailed(Exception):
    """There was no answer, or none that can be used."""


def request(hub, method, path, token, body=None, trust=SYSTEM, most_bytes=1 << 16):
    """Ask `path` below the hub's ingest. Redirections are not followed: they would carry the token elsewhere."""
    if hub.secure:
        from gpulse_probe import tls

        link = http.client.HTTPSConnection(hub.host, hub.port, timeout=_SECONDS, context=tls.context(trust))
    else:
        link = http.client.HTTPConnection(hub.host, hub.port, timeout=_SECONDS)
    headers = {"Authorization": "Bearer " + token, "User-Agent": "gpulse-agent/" + __version__, "Accept": "*/*"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    # A connection that was not looked at is never made on the way.
    link.auto_open = 0
    try:
        link.connect()
        if hub.secure:
            tls.check(trust, link.sock.getpeercert(True))
        link.request(method, hub.path + path, body, headers)
        response = link.getresponse()
        content = response.read(most_bytes + 1)
    except http.client.HTTPException as error:
        raise RequestFailed("its answer cannot be read (%s)" % type(error).__name__)
    except OSError as error:
        raise RequestFailed(error.strerror or str(error))
    finally:
        link.close()
    if len(content) > most_bytes:
        raise RequestFailed("its answer is longer than %d bytes" % most_bytes)
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)
