"""A number that grows with every write: on PostgreSQL whoever writes takes its row first, and so is alone."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    writes = op.create_table("writes", sa.Column("number", sa.BigInteger, nullable=False))
    op.bulk_insert(writes, [{"number": 0}])
