"""Accounts, their sessions, keys and sign-in links; the audit log; the hub's own id."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    hub = op.create_table(
        "hub",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_hub"),
    )
    op.bulk_insert(hub, [{"id": secrets.token_hex(16), "revision": 0}])
    _accounts()
    _sessions()
    _keys()
    op.create_table(
        "links",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("account", sa.String(12), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("expires_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_links"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_links_account"),
    )
    op.create_index("ix_links_account", "links", ["account"])
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("way", sa.String(9), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_at", "audit", ["at"])


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folded", sa.Text, nullable=False),
        sa.Column("display", sa.Text, nullable=False),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("password", sa.Text),
        sa.Column("issuer", sa.Text),
        sa.Column("subject", sa.Text),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("signed_in_at", sa.Double),
        sa.Column("disabled_at", sa.Double),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("folded", name="uq_accounts_folded"),
    )
    op.create_index("ix_accounts_revision", "accounts", ["revision"])
    external = sa.text("issuer IS NOT NULL")
    op.create_index(
        "one_subject", "accounts", ["issuer", "subject"], unique=True, sqlite_where=external, postgresql_where=external
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("account", sa.String(12), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("page_digest", sa.LargeBinary(32), nullable=False),
        sa.Column("address", sa.Text, nullable=False),
        sa.Column("browser", sa.Text, nullable=False),
        sa.Column("by_link", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.Column("ended_at", sa.Double),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sessions"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_sessions_account"),
    )
    op.create_index("ix_sessions_account", "sessions", ["account"])
    op.create_index("ix_sessions_revision", "sessions", ["revision"])


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("account", sa.String(12), nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("scopes", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("used_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_keys_account"),
    )
    op.create_index("ix_keys_account", "keys", ["account"])
    op.create_index("ix_keys_revision", "keys", ["revision"])
