"""The entries of files that reservations were imported from: they are known again, whatever became of those since."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    origins = op.create_table(
        "reservation_origins",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("reservation", sa.String(12), nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("index", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("end_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservation_origins"),
        sa.ForeignKeyConstraint(["reservation"], ["reservations.id"], name="fk_reservation_origins_reservation"),
    )
    op.create_index("ix_reservation_origins_reservation", "reservation_origins", ["reservation"])
    op.create_index("ix_reservation_origins_end_at", "reservation_origins", ["end_at"])
    # Of those that are there the history has how they were imported, with the node and the login that were meant.
    changes = sa.table("reservation_changes", *map(sa.column, ("id", "reservation", "action", "after")))
    query = sa.select(changes.c.reservation, changes.c.after).where(changes.c.action == "imported")
    rows = []
    for identity, after in op.get_bind().execute(query.order_by(changes.c.id)):
        made = json.loads(after)
        entry = {"reservation": identity, "name": made["person"], "end_at": made["end"]}
        rows += [entry | {"host": node, "index": index} for node, index in made["places"]]
    op.bulk_insert(origins, rows)
