"""What Alembic runs: the steps, on the connection that it was given."""

from alembic import context

from gpulse.store.tables import METADATA

# SQLite changes a table by making it anew, which Alembic calls a batch.
context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, render_as_batch=True)
context.run_migrations()
