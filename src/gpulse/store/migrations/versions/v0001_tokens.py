"""Tokens of nodes, and tokens to join with."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("kind", sa.String(4), nullable=False),
        sa.Column("nodes", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("replaces", sa.Boolean, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("used_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("ended", sa.String(8)),
        sa.Column("joined_by", sa.String(12)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("members", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.ForeignKeyConstraint(["joined_by"], ["tokens.id"], name="fk_tokens_joined_by"),
    )
    op.create_index("ix_tokens_nodes", "tokens", ["nodes"])
    op.create_index("ix_tokens_revision", "tokens", ["revision"])
    live = sa.text("kind = 'node' AND ended_at IS NULL")
    op.create_index("one_live_token", "tokens", ["nodes"], unique=True, sqlite_where=live, postgresql_where=live)
