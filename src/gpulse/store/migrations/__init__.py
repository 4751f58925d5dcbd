"""Brings a database to the tables this gpulse knows; a step is a file in `versions`."""

from pathlib import Path

from sqlalchemy import Connection, inspect, text

from gpulse.errors import StoreError

# The newest step. It stands here so that a database that is up to date needs no Alembic: it takes long to load.
HEAD = "0006"


def upgrade(connection: Connection, name: str, elsewhere: str, to: str | None = None) -> None:
    """Within the transaction that is open: all of it is done or nothing. `to` is an older version, for older backups.

    `name` is what an error calls the database, `elsewhere` what else a person could do than upgrade gpulse.
    """
    found, wanted = version(connection), to or HEAD
    if found == wanted:
        return
    from alembic import command  # noqa: PLC0415 - rarely needed, and it takes long to load
    from alembic.config import Config  # noqa: PLC0415 - as above
    from alembic.script import ScriptDirectory  # noqa: PLC0415 - as above

    config = Config()
    # In Alembic's settings a % begins a variable.
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {step.revision for step in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreError(
            f"{name} was last written by a newer gpulse (its tables are of version {found}, this one knows {HEAD});"
            f" upgrade this gpulse, or {elsewhere}"
        )
    command.upgrade(config, wanted)


def refuse_others(connection: Connection, name: str) -> None:
    """StoreError where the tables are not those that this gpulse knows."""
    found = version(connection)
    if found is not None and found > HEAD:
        raise StoreError(
            f"{name} was last written by a newer gpulse (its tables are of version {found}, this one knows {HEAD});"
            " upgrade this gpulse"
        )
    if found != HEAD:
        raise StoreError(
            f"{name} has tables of version {found or 'none'}, and this gpulse knows {HEAD}, so that it would have to"
            " change them first; use the gpulse that the hub runs with, or start the hub with this one"
        )


def version(connection: Connection) -> str | None:
    """Of the tables that are there; None where there are none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
