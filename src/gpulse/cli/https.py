"""How commands know that a hub at https is the one they mean: by the fingerprint of its key, else by certificates."""

import contextlib
import ssl
import urllib.request
from functools import partial
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

from gpulse.errors import HubError
from gpulse.tls.files import own_files
from gpulse_probe import fingerprint as fingerprints


def opening(fingerprint: str | None, data: Path) -> urllib.request.HTTPSHandler:
    """What opens connections; `data` is where a hub of this machine keeps its own certificate, which is trusted too."""
    if fingerprint is None:
        context = ssl.create_default_context()
        # None is there, or it is somebody else's: then it is not for this person to trust.
        with contextlib.suppress(OSError):
            context.load_verify_locations(own_files(data).certificate)
        return urllib.request.HTTPSHandler(context=context)
    try:
        # The probe has no annotations: they would cost every node memory.
        wanted: str = fingerprints.read(fingerprint)  # type: ignore[no-untyped-call]
    except ValueError as error:
        raise HubError(f"--fingerprint {fingerprint!r}: {error}; `gpulse up` prints it") from None
    return _Pinning(wanted)


class _Pinning(urllib.request.HTTPSHandler):
    def __init__(self, wanted: str) -> None:
        self._trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusting.check_hostname = False
        self._trusting.verify_mode = ssl.CERT_NONE
        super().__init__(context=self._trusting)
        self._wanted = wanted

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(partial(_Pinned, context=self._trusting, wanted=self._wanted), req)


class _Pinned(HTTPSConnection):
    """Sends nothing before the other end has shown that it has the key."""

    def __init__(self, *place: Any, wanted: str, **options: Any) -> None:
        super().__init__(*place, **options)
        self._wanted = wanted

    def connect(self) -> None:
        super().connect()
        try:
            self._check(self.sock.getpeercert(True) or b"")
        except HubError:
            self.close()
            raise

    def _check(self, certificate: bytes) -> None:
        place = f"{self.host}:{self.port}"
        try:
            found: str = fingerprints.of_certificate(certificate)  # type: ignore[no-untyped-call]
        except fingerprints.NoCertificate as error:
            raise HubError(f"the certificate of {place} cannot be read: {error}; nothing was sent to it") from None
        if found != self._wanted:
            raise HubError(
                f"what answers at {place} has another key than the hub should: {found} instead of {self._wanted};"
                " it may be somebody else, and nothing was sent to it. If the hub has a new key, give --fingerprint"
                " what `gpulse up` prints now"
            )
