"""Somebody who wants to be somebody else: a session planted before the sign-in, and guessed passwords."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.hub.page_client import PageClient
from tests.web.accounts_site import PASSWORD, AccountsSite


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountsSite]:
    with AccountsSite(tmp_path_factory.mktemp("site")) as found:
        for name in ("ann", "bob", "eve"):
            found.add(name)
        yield found


def browser(site: AccountsSite) -> PageClient:
    return PageClient(site.url)


def sign_in(client: httpx.Client, name: str, password: str = PASSWORD) -> httpx.Response:
    return client.post("api/v1/session", json={"name": name, "password": password})


def who(client: httpx.Client) -> str | None:
    return client.get("api/v1/me").json()["name"]


def only_cookie(client: httpx.Client) -> tuple[str, str]:
    (found,) = client.cookies.jar
    assert found.value
    return found.name, found.value


def test_a_session_of_the_attackers_does_not_become_the_victims(site: AccountsSite):
    """eve signs in, plants her cookie in ann's browser, and waits for ann to sign in."""
    with browser(site) as eve, browser(site) as ann:
        assert sign_in(eve, "eve").status_code == 200
        name, planted = only_cookie(eve)
        ann.cookies.set(name, planted, domain="127.0.0.1", path="/")
        assert sign_in(ann, "ann").status_code == 200
        assert who(ann) == "ann"
        assert all(one.value != planted for one in ann.cookies.jar)
        # What was planted is eve's own, as it was, and never ann's; nor is it with what ann's page has.
        assert who(eve) == "eve"
        eve.headers["X-Gpulse"] = ann.page_key
        assert who(eve) is None


def test_a_made_up_session_does_not_become_one(site: AccountsSite):
    with browser(site) as known:
        assert sign_in(known, "bob").status_code == 200
        name, real = only_cookie(known)
    made_up = real[:-4] + ("0000" if not real.endswith("0000") else "1111")
    with browser(site) as victim, browser(site) as attacker:
        for client in (victim, attacker):
            client.cookies.set(name, made_up, domain="127.0.0.1", path="/")
        assert who(attacker) is None
        attacker.cookies.set(name, made_up, domain="127.0.0.1", path="/")
        assert sign_in(victim, "bob").status_code == 200
        assert all(one.value != made_up for one in victim.cookies.jar)
        assert who(attacker) is None


def test_a_cookie_of_before_is_nobody_after_signing_out(site: AccountsSite):
    with browser(site) as ann, browser(site) as thief:
        assert sign_in(ann, "ann").status_code == 200
        name, stolen = only_cookie(ann)
        thief.cookies.set(name, stolen, domain="127.0.0.1", path="/")
        thief.headers["X-Gpulse"] = ann.page_key
        assert who(thief) == "ann", "with both, they are"
        assert ann.delete("api/v1/session").status_code == 200
        thief.cookies.set(name, stolen, domain="127.0.0.1", path="/")
        assert who(thief) is None


def test_a_cookie_that_another_port_was_sent_is_nobody(site: AccountsSite):
    with browser(site) as ann, browser(site) as thief:
        assert sign_in(ann, "ann").status_code == 200
        name, stolen = only_cookie(ann)
        for key in ("1", "", stolen, f"gpp_{stolen.partition('_')[2]}"):
            thief.cookies.set(name, stolen, domain="127.0.0.1", path="/")
            thief.headers["X-Gpulse"] = key
            assert who(thief) is None
            assert thief.get("api/v1/nodes").status_code == 401
            for path in ("api/v1/session", "api/v1/session?everywhere=true"):
                assert thief.delete(path).status_code in (401, 403)
            assert thief.post("api/v1/me/keys", json={"label": "x", "scopes": ["read"]}).status_code in (401, 403)
        assert who(ann) == "ann"


@pytest.fixture
def guessed(tmp_path: Path) -> Iterator[AccountsSite]:
    """A hub of its own: the address has to wait afterwards, and so would the tests beside."""
    with AccountsSite(tmp_path) as site:
        site.add("ann")
        yield site


def guesses(client: httpx.Client) -> list[tuple[float, httpx.Response]]:
    """Wrong ones, until one has to wait; each with when it was sent."""
    made: list[tuple[float, httpx.Response]] = []
    while not made or made[-1][1].status_code == 401:
        assert len(made) < 20
        made.append((time.monotonic(), sign_in(client, "ann", f"a wrong guess {len(made)}")))
    return made


def test_guessing(guessed: AccountsSite):
    with browser(guessed) as guesser, browser(guessed) as ann:
        made = guesses(guesser)
        assert [answer.status_code for _, answer in made] == [401] * (len(made) - 1) + [429]
        assert len(made) > 5
        # Where more than five were taken, each came when the wait for it was over: on a busy machine they take long.
        for number in range(5, len(made) - 1):
            assert made[number + 1][0] - made[number - 1][0] >= 5 * 2 ** (number - 5)
        refused = made[-1][1]
        waits = int(refused.headers["retry-after"])
        assert 1 <= waits <= 5 * 2 ** (len(made) - 6)
        assert str(waits) in refused.json()["error"]["message"] + refused.json()["error"]["detail"]

        def in_time() -> list[httpx.Response] | None:
            """What is said to a right guess, to a wrong one and to the name in other letters, before the wait ends."""
            sent, refused = guesses(guesser)[-1]
            said = [
                sign_in(guesser, "ann"),
                sign_in(guesser, "ann", "another wrong guess"),
                sign_in(guesser, "ANN"),
            ]
            return said if time.monotonic() - sent < int(refused.headers["retry-after"]) - 1 else None

        # Who guessed right at last does not learn that they did, and the name in other letters is the same account.
        right, wrong, other = guessed.hub.until(in_time, 60)
        assert (right.status_code, wrong.status_code, other.status_code) == (429, 429, 429)
        assert right.json()["error"]["code"] == wrong.json()["error"]["code"]
        assert "set-cookie" not in right.headers
        guessed.hub.until(lambda: sign_in(ann, "ann").status_code == 200, 60)
        assert who(ann) == "ann"
