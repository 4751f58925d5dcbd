"""[tls]: whether the hub is at https, and by which certificate; what does not go together there."""

from pathlib import Path

import msgspec

from gpulse.config.checks import Tell


class Tls(msgspec.Struct, frozen=True):
    """[tls]: the hub at https, by a certificate from elsewhere or by one of its own."""

    certificate: Path | None = None
    key: Path | None = None
    self_signed: bool = False

    @property
    def on(self) -> bool:
        return self.self_signed or self.certificate is not None


def check_tls(given: Tls, tell: Tell) -> None:
    if given.certificate is not None and given.key is None:
        tell(("tls", "certificate"), "is of no use without its private key; set tls.key too")
    if given.key is not None and given.certificate is None:
        tell(("tls", "key"), "is of no use without its certificate; set tls.certificate too")
    if given.self_signed and (given.certificate is not None or given.key is not None):
        tell(("tls", "self_signed"), "cannot be true beside tls.certificate and tls.key; keep one of both ways")
