"""TLS between a connection's bytes and its socket; loaded only where the hub is at https, for it costs 5 MB."""

import ssl

from gpulse_probe.link import Lost

# Up to Python 3.6 a certificate of another name is no SSLError.
_FAILURES = (ssl.SSLError, ssl.CertificateError)


class TlsFailed(Lost):
    """The other end is not who it should be, or does not speak TLS; the message says which."""


def context(ca=None):
    """Trusts the certificates in a file, or those of the system."""
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise TlsFailed("certificates in %s: %s" % (ca, error.strerror or error))


class Tls:
    def __init__(self, host, ca=None):
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._object = context(ca).wrap_bio(self._in, self._out, server_hostname=host)
        self.ready = False

    def shake(self, raw):
        """Go on with the handshake after these bytes of the socket: bytes for it. ready: whether it is done."""
        self._in.write(raw)
        try:
            self._object.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            self.ready = False
        except _FAILURES as error:
            raise TlsFailed(_words(error))
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
                    break
                pieces.append(piece)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            # That was all; an end is seen at the socket.
            pass
        except ssl.SSLError as error:
            raise TlsFailed(_words(error))
        return b"".join(pieces), self._out.read()


def _words(error):
    if isinstance(error, ssl.CertificateError) or error.reason == "CERTIFICATE_VERIFY_FAILED":
        why = getattr(error, "verify_message", "") or str(error)
        return "its certificate is not trusted: %s; name the one that signed it with --ca" % why.rstrip(".")
    return "TLS: %s" % (error.reason or str(error)).replace("_", " ").lower()
