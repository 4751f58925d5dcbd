"""Nodes in DNS: the addresses of a name (A, AAAA), or the hosts and ports of its SRV records."""

from collections.abc import Iterator

import dns.asyncresolver
import dns.exception
import dns.flags
import dns.rdataset
import dns.resolver

from gpulse.config.hosts import is_host, parse
from gpulse.config.sections import DnsTable, Record
from gpulse.discovery.asking import Answer, Found
from gpulse.errors import DiscoveryError

# For one question, with all servers that are tried.
DEADLINE_SECONDS = 10.0
# However long the answer may be kept, it is asked for again after so many times refresh_seconds.
MOST_REFRESHES = 10
_PORT = 53


class Dns:
    """What a table asks."""

    def __init__(self, table: DnsTable) -> None:
        self._table = table
        # The name is the whole name, as an operator writes it: no search domains.
        self._name = table.name.rstrip(".") + "."

    def __str__(self) -> str:
        return f"dns {self._table.name}"

    async def ask(self, first: bool) -> Answer:  # noqa: ARG002 - DNS answers at once
        problems: list[str] = []
        found: set[Found] = set()
        ttl: float = MOST_REFRESHES * self._table.refresh_seconds
        resolver = self._resolver()
        for record in self._table.records():
            answer = await self._resolve(resolver, record)
            # None: the name is there, without such records.
            if answer.rrset is not None:
                ttl = min(ttl, answer.rrset.ttl)
                found.update(_found(answer.rrset, record, problems))
        ordered = sorted(found, key=lambda one: (one.name, one.port or 0))
        return Answer(ordered, max(ttl, self._table.refresh_seconds), problems)

    def _resolver(self) -> dns.asyncresolver.Resolver:
        """Made for each question: the system's servers change with its networks."""
        try:
            resolver = dns.asyncresolver.Resolver(configure=self._table.server is None)
        except dns.resolver.NoResolverConfiguration as error:
            raise DiscoveryError("this machine has no name server in /etc/resolv.conf; set server") from error
        if self._table.server is not None:
            server = parse(self._table.server)[0]
            resolver.nameservers = [server.host]
            resolver.port = server.port or _PORT
        resolver.lifetime = DEADLINE_SECONDS
        return resolver

    async def _resolve(self, resolver: dns.asyncresolver.Resolver, record: Record) -> dns.resolver.Answer:
        try:
            # What does not fit into a datagram is asked for again by TCP.
            answer = await resolver.resolve(self._name, record, raise_on_no_answer=False)
        except dns.resolver.NXDOMAIN as error:
            raise DiscoveryError("there is no such name (NXDOMAIN); look at its spelling and its zone") from error
        except dns.resolver.LifetimeTimeout as error:
            raise DiscoveryError(f"no answer to {record} within {DEADLINE_SECONDS:g} s") from error
        except (dns.exception.DNSException, OSError) as error:
            words = " ".join(str(error).split()) or type(error).__name__
            raise DiscoveryError(f"no answer to {record}: {words}") from error
        if answer.response.flags & dns.flags.TC:
            # Even by TCP there is no room for more than 64 KiB; a part is no answer.
            raise DiscoveryError(
                f"it has more {record} records than fit into an answer; divide them among several names"
            )
        return answer


def _found(records: dns.rdataset.Rdataset, kind: Record, problems: list[str]) -> Iterator[Found]:
    for record in records:
        if kind != "SRV":
            yield Found(record.address, record.address)
            continue
        host = record.target.to_text(omit_final_dot=True)
        # A lone dot says that there is no such service.
        if host == ".":
            continue
        if is_host(host):
            yield Found(host, host, record.port or None)
        else:
            problems.append(f'"{host[:100]}" is left out: it is no host name')
