"""Reservations, their GPUs and their history; calendar feeds."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("person", sa.Text, nullable=False),
        sa.Column("maker", sa.Text, nullable=False),
        sa.Column("start_at", sa.Double, nullable=False),
        sa.Column("end_at", sa.Double, nullable=False),
        sa.Column("last_at", sa.Double, nullable=False),
        sa.Column("comment", sa.Text, nullable=False),
        sa.Column("hold", sa.Boolean, nullable=False),
        sa.Column("imported", sa.Boolean, nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("changed_at", sa.Double),
        sa.Column("ended_at", sa.Double),
        sa.Column("ending", sa.String(9)),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_person_last_at", "reservations", ["person", "last_at"])
    op.create_index("ix_reservations_last_at", "reservations", ["last_at"])
    op.create_index("ix_reservations_revision", "reservations", ["revision"])
    op.create_table(
        "reservation_places",
        sa.Column("reservation", sa.String(12), nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("index", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("reservation", "node", "index", name="pk_reservation_places"),
        sa.ForeignKeyConstraint(["reservation"], ["reservations.id"], name="fk_reservation_places_reservation"),
    )
    op.create_index("ix_reservation_places_node_index", "reservation_places", ["node", "index"])
    op.create_table(
        "reservation_changes",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("reservation", sa.String(12), nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("action", sa.String(9), nullable=False),
        sa.Column("before", sa.Text),
        sa.Column("after", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservation_changes"),
        sa.ForeignKeyConstraint(["reservation"], ["reservations.id"], name="fk_reservation_changes_reservation"),
    )
    op.create_index("ix_reservation_changes_reservation", "reservation_changes", ["reservation"])
    op.create_table(
        "feeds",
        sa.Column("id", sa.String(12), nullable=False),
        sa.Column("account", sa.String(12), nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("made_at", sa.Double, nullable=False),
        sa.Column("revoked_at", sa.Double),
        sa.PrimaryKeyConstraint("id", name="pk_feeds"),
        sa.ForeignKeyConstraint(["account"], ["accounts.id"], name="fk_feeds_account"),
    )
    op.create_index("ix_feeds_account", "feeds", ["account"])
