"""Secrets are told once: they are in no file, no log, no error and no repr."""

import gc
import logging

import pytest
from sqlalchemy.exc import IntegrityError

from gpulse.auth import secret_text
from gpulse.auth.passwords import Passwords
from gpulse.errors import GpulseError
from gpulse.store import accounts as account_table
from tests.auth.conftest import QUICK

PASSWORD = "a quite secret password"  # noqa: S105 - that of a test


@pytest.fixture
def told(directory, doing, bob):
    """Everything secret that there is, as its owner gets it."""
    doing(directory.accounts.set_password(bob.id, PASSWORD))
    return [
        *doing(directory.sessions.begin(bob.id, "", "")),
        doing(directory.keys.create(bob.id, "x", ["read"])),
        doing(directory.links.make(bob.id)),
    ]


def secrets_of(told):
    return [PASSWORD, *(text.split("_")[2] for text in told)]


# What is in the file is looked at.
@pytest.mark.parametrize("records_url", ["sqlite"], indirect=True)
def test_not_on_the_disk(folder, directory, told):
    assert directory.accounts.by_name("bob").has_password
    stored = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"$argon2id$" in stored
    for secret in secrets_of(told):
        assert secret.encode() not in stored
    for secret in secrets_of(told)[1:]:
        assert bytes.fromhex(secret) not in stored


def test_not_in_logs_nor_reprs(directory, doing, told, caplog):
    caplog.set_level(logging.DEBUG)
    logging.getLogger("sqlalchemy.engine").setLevel(logging.DEBUG)
    try:
        doing(directory.accounts.check_password("bob", PASSWORD))
        doing(directory.accounts.set_password(directory.accounts.by_name("bob").id, PASSWORD))
        doing(directory.links.redeem(doing(directory.links.make(directory.accounts.by_name("bob").id))))
    finally:
        logging.getLogger("sqlalchemy.engine").setLevel(logging.NOTSET)
    views = [directory.accounts.list(), directory.keys.list(directory.accounts.by_name("bob").id)]
    shown = [repr(one) for one in (directory.keys.check(told[2]), directory.accounts.by_name("bob"), views)]
    parts = (directory, directory.accounts, directory.sessions, directory.keys, directory.links, directory._known)
    shown += [repr(part) for part in parts] + [repr(vars(part)) for part in parts] + [caplog.text]
    for secret in secrets_of(told):
        assert secret not in "".join(shown)
    # Nor the password's hash, which is read for a sign-in alone.
    assert "argon2id" not in "".join(shown).replace(directory.accounts._passwords._decoy, "")


def test_the_hash_does_not_stay_in_memory(directory, told):
    assert told
    encoded = directory._known._records.read(
        lambda one: account_table.password_hash(one, directory.accounts.by_name("bob").id)
    ).result()
    gc.collect()
    for account in directory._known.accounts.values():
        assert encoded not in account


def test_not_in_errors(directory, doing, told):
    wrong = [text[:-1] + ("0" if text[-1] != "0" else "1") for text in told]
    wrong += [f"{text} " for text in told] + [secret_text.make("gpk")[0]]
    refusals = []
    for text in (*told, *wrong):
        for work in (
            lambda text=text: directory.keys.check(text),
            lambda text=text: doing(directory.links.redeem(text)),
            lambda text=text: doing(directory.accounts.check_password("bob", text)),
            lambda text=text: doing(directory.accounts.add("eve", "viewer", text[:5])),
            lambda text=text: doing(directory.accounts.add(f"{text} ", "viewer")),
            lambda text=text: doing(directory.accounts.add("eve", text)),
            lambda text=text: doing(directory.accounts.disable(text)),
            lambda text=text: directory.accounts.view(text),
            lambda text=text: doing(directory.keys.revoke(text)),
            lambda text=text: doing(directory.keys.create(text, "x", ["read"])),
            lambda text=text: doing(directory.keys.create(directory.accounts.by_name("bob").id, "x", [text])),
        ):
            try:
                work()
            except GpulseError as error:
                refusals.append(f"{error!r} {error} {getattr(error, 'detail', '')}")
    assert len(refusals) > 40
    for secret in secrets_of(told):
        assert secret[:20] not in "".join(refusals)


def test_not_in_what_a_mistake_of_ours_prints(directory, records, doing, bob):
    encoded = doing(Passwords(QUICK).hash(PASSWORD, "x"))
    with pytest.raises(IntegrityError) as caught:
        records.write(lambda one: account_table.add(one, bob, encoded)).result()
    assert encoded not in str(caught.value)
    assert directory.accounts.by_name("bob") == bob
