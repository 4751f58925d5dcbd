"""Records of DNS, as they come in an answer."""

import dns.exception
import dns.message
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from gpulse.config.hosts import is_host
from gpulse.discovery import dns as reader


def _answer(kind: str, *records: str) -> bytes:
    message = dns.message.make_response(dns.message.make_query("gpus.example.", kind, id=1))
    message.answer.append(dns.rrset.from_text("gpus.example.", 60, "IN", kind, *records))
    return message.to_wire()


SEEDS = [
    _answer("A", "10.0.0.1", "10.0.0.2"),
    _answer("AAAA", "fe80::1"),
    _answer("SRV", "0 5 7080 gpu01.example.", "0 5 0 .", r"1 1 1 a\032b\000.example."),
]
WORDS = ["\\xc0\\x0c", "\\x00\\x21\\x00\\x01", "\\x00\\x01\\x00\\x01"]


def fuzz(data: bytes) -> None:
    try:
        message = dns.message.from_wire(data)
    except (dns.exception.DNSException, ValueError):
        # The library's own refusals.
        return
    for records in message.answer:
        kind = dns.rdatatype.to_text(records.rdtype)
        # The resolver gives no records of another class than it asked for.
        if kind in ("A", "AAAA", "SRV") and records.rdclass == dns.rdataclass.IN:
            problems: list[str] = []
            for one in reader._found(records, kind, problems):
                assert is_host(one.host)
                assert one.port is None or 0 < one.port < 65536
            assert all(problems)
