"""A reverse proxy's word: whose, from where, and when it does not count."""

from pathlib import Path

import pytest

from gpulse.auth.proxy import TrustedProxy, Vouched
from gpulse.config import Proxy, Roles
from gpulse.errors import SignInRefused

SECRET = "0123456789abcdef0123"  # noqa: S105 - of the test alone


def headers(*pairs: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode(), value.encode("utf-8")) for name, value in pairs]


ANN = headers(("X-User", "ann"))
OPEN = TrustedProxy(Proxy(header="X-User", addresses=("10.1.0.0/16", "2001:db8::/32"), groups_header="X-Groups"))


@pytest.mark.parametrize("peer", ["10.1.2.3", "2001:db8::7", "::ffff:10.1.2.3"])
def test_from_the_listed_addresses(peer: str):
    assert OPEN.person(ANN, peer) == Vouched("ann", frozenset())


@pytest.mark.parametrize("peer", ["10.2.0.1", "127.0.0.1", "::1", "", "proxy", "2001:db9::7"])
def test_from_elsewhere_it_is_ignored(peer: str):
    assert OPEN.person(ANN, peer) is None
    assert OPEN.address(ANN, peer) == peer


def test_the_secret_is_needed_where_there_is_one(tmp_path: Path):
    file = tmp_path / "secret"
    file.touch(0o600)
    file.write_text(SECRET + "\n")
    proxy = TrustedProxy(Proxy(header="X-User", addresses=("127.0.0.1",), secret_file=file))
    right = ("X-Gpulse-Proxy-Secret", SECRET)
    assert proxy.person(headers(("X-User", "ann"), right), "127.0.0.1") == Vouched("ann", frozenset())
    for wrong in ([], [("X-Gpulse-Proxy-Secret", SECRET[:-1])], [("X-Gpulse-Proxy-Secret", "é")], [right, right]):
        assert proxy.person(headers(("X-User", "ann"), *wrong), "127.0.0.1") is None
    assert proxy.person(headers(("X-User", "ann"), right), "10.0.0.7") is None


def test_who_sends_it_twice_is_refused():
    with pytest.raises(SignInRefused) as caught:
        OPEN.person(headers(("X-User", "admin"), ("X-User", "ann")), "10.1.2.3")
    assert caught.value.code == "proxy_header_twice"


def test_nobody_is_nobody():
    assert OPEN.person(headers(("X-User", "")), "10.1.2.3") is None
    assert OPEN.person(headers(("X_User", "ann"), ("X-Users", "ann")), "10.1.2.3") is None


def test_names_and_groups():
    told = headers(("X-User", "jürgen"), ("X-Groups", "staff, gpu-admins"), ("X-Groups", "a;b"))
    person = OPEN.person(told, "10.1.2.3")
    assert person == Vouched("jürgen", frozenset({"staff", "gpu-admins", "a", "b"}))


def test_roles():
    roles = Roles(admin=("gpu-admins",), member=("staff",))
    strict = TrustedProxy(
        Proxy(header="X-User", addresses=("10.0.0.7",), groups_header="X-Groups", roles=roles, default_role="none")
    )
    assert strict.role(Vouched("ann", frozenset({"staff", "gpu-admins"})), "viewer") == "admin"
    with pytest.raises(SignInRefused, match="ann has no role here"):
        strict.role(Vouched("ann", frozenset({"others"})), "admin")
    # Without groups it is what admins made it.
    assert OPEN.role(Vouched("ann", frozenset()), None) == "viewer"
    assert OPEN.role(Vouched("ann", frozenset()), "admin") == "admin"


def test_where_people_are():
    told = headers(("X-Forwarded-For", "6.6.6.6, 192.0.2.7"))
    assert OPEN.address(told, "10.1.2.3") == "192.0.2.7", "what the browser sent stands before what the proxy adds"
    assert OPEN.address(headers(("X-Forwarded-For", "unknown")), "10.1.2.3") == "10.1.2.3"
    assert OPEN.https(headers(("X-Forwarded-Proto", "https")))
    assert not OPEN.https(headers(("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")))
