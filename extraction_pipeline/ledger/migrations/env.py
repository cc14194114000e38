"""Alembic's entry: it runs on the connection that `migrate` hands over."""

from alembic import context

from extraction_pipeline.ledger.tables import SCHEMA, metadata


def _only_ours(name: str | None, kind: str, _parents: object) -> bool:
    return name == SCHEMA if kind == "schema" else True


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_schemas=True,
    include_name=_only_ours,
    version_table="alembic_version",
    version_table_schema=SCHEMA,
)
with context.begin_transaction():
    context.run_migrations()
