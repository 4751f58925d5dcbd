"""Columns that the steps 0002 and 0003 got only after databases had been made by them; most databases have them."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    there = sa.inspect(op.get_bind())
    if not {"page_digest", "by_link"} <= {column["name"] for column in there.get_columns("sessions")}:
        # A session without a page key signs nobody in, so there is nothing to keep: people sign in again.
        op.drop_table("sessions")
        _sessions()
    if "changed_at" not in {column["name"] for column in there.get_columns("reservations")}:
        op.add_column("reservations", sa.Column("changed_at", sa.Double))


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
