"""TLS between a connection's bytes and its socket; loaded only where the hub is at https, for it costs 5 MB."""

import ssl

from gpulse_probe import fingerprint
from gpulse_probe.link import Distrusted, Lost
from gpulse_probe.trust import SYSTEM

# Up to Python 3.6 a certificate of another name is no SSLError.
_FAILURES = (ssl.SSLError, ssl.CertificateError)


class TlsFailed(Lost):
    """The other end is not who it should be, or does not speak TLS; the message says which."""


def context(trust=SYSTEM):
    """Trusts the certificates in a file, or those of the system; with a fingerprint any, for check() comes after."""
    if trust.fingerprint is not None:
        return _unverifying()
    try:
        return ssl.create_default_context(cafile=trust.ca)
    except OSError as error:
        raise TlsFailed("certificates in %s: %s" % (trust.ca, error.strerror or error))


def _unverifying():
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    # minimum_version came with Python 3.7.
    made.options |= ssl.OP_NO_TLSv1 | ssl.OP_NO_TLSv1_1
    return made


def check(trust, certificate):
    """Distrusted, where the key in a certificate (DER, None if there is none) is not the one it has to be.

    The handshake has shown that the other end holds the key: nothing of ours may be sent before this.
    """
    if trust.fingerprint is None:
        return
    try:
        found = fingerprint.of_certificate(certificate or b"")
    except fingerprint.NoCertificate as error:
        raise Distrusted("its certificate cannot be read: %s; nothing was sent to it" % error)
    if found != trust.fingerprint:
        raise Distrusted(
            "it has another key than it should: %s instead of %s, so it may be somebody else, and nothing was sent to "
            "it; if the hub has a new key, give --fingerprint what gpulse up prints now" % (found, trust.fingerprint)
        )


class Tls:
    """ended: whether the other end has said that nothing more will come."""

    def __init__(self, host, trust=SYSTEM):
        self.ready = self.ended = False
        self._trust = trust
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._object = context(trust).wrap_bio(self._in, self._out, server_hostname=host)

    def shake(self, raw):
        """Go on with the handshake after these bytes of the socket: bytes for it. ready: whether it is done."""
        self._in.write(raw)
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return self._out.read()
        except _FAILURES as error:
            raise TlsFailed(_words(error))
        check(self._trust, self._object.getpeercert(True))
        self.ready = True
        return self._out.read()

    def encrypt(self, data):
        try:
            self._object.write(data)
        except ssl.SSLError as error:
            raise TlsFailed(_words(error))
        return self._out.read()

    def decrypt(self, raw):
        """(data, bytes for the socket)"""
        self._in.write(raw)
        pieces = []
        try:
            while True:
                piece = self._object.read(1 << 16)
                if not piece:
                    # So some Pythons tell the end.
                    self.ended = True
                    break
                pieces.append(piece)
        except ssl.SSLWantReadError:
            # That was all for now.
            pass
        except ssl.SSLZeroReturnError:
            # The socket may stay open: a server waits for our goodbye as well.
            self.ended = True
        except ssl.SSLError as error:
            raise TlsFailed(_words(error))
        return b"".join(pieces), self._out.read()


def _words(error):
    if isinstance(error, ssl.CertificateError) or error.reason == "CERTIFICATE_VERIFY_FAILED":
        why = getattr(error, "verify_message", "") or str(error)
        return (
            "its certificate is not trusted: %s; name the one that signed it with --ca, or the hub's own key "
            "with --fingerprint" % why.rstrip(".")
        )
    return "TLS: %s" % (error.reason or str(error)).replace("_", " ").lower()
