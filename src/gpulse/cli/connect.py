"""gpulse user connect: somebody who has an account signs in elsewhere from now on."""

from typing import TYPE_CHECKING, Annotated

import typer

from gpulse.cli import terminal
from gpulse.cli.accounts import by_local_person, named, with_directory
from gpulse.cli.signed_in import Name
from gpulse.cli.up import ConfigPath, Data, read_config
from gpulse.errors import AccountError

if TYPE_CHECKING:
    from gpulse.auth.directory import Directory


def connect(
    name: Name,
    issuer: Annotated[
        str | None, typer.Option("--issuer", metavar="URL", help="The provider, as in access.oidc.issuer.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="ID", help="What the person is called there, for ever.")
    ] = None,
    proxy: Annotated[
        bool, typer.Option("--proxy", help="By the proxy of [access.proxy], which calls the person NAME.")
    ] = False,
    config: ConfigPath = None,
    data: Data = None,
) -> None:
    """Let somebody who has an account sign in by single sign-on, or by a proxy, from now on."""
    from gpulse.auth.proxy import ISSUER

    settings, _ = read_config(config)
    if proxy == (issuer is not None) or (issuer is None) != (subject is None):
        raise AccountError(
            400, "bad_option", "it is not said where the person signs in", "give --issuer and --subject, or --proxy"
        )

    async def work(directory: "Directory") -> str:
        account = named(directory, name)
        where, called = (ISSUER, name) if issuer is None or subject is None else (issuer, subject)
        return (await directory.accounts.connect(account.id, where, called, by=by_local_person())).name

    terminal.tell(f"{with_directory(settings, data, work)} signs in by {issuer or 'the proxy'}")
