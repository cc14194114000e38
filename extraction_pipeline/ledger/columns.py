"""What the ledger's tables are made of: their schema, their names, and the columns that recur."""

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, Column, DateTime, Enum, Identity, MetaData, func

SCHEMA = "extraction"

metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    },
)

SHA256 = r"'^[0-9a-f]{64}$'"


def enum_type(kind: type[StrEnum], name: str) -> Enum:
    """An enum of the database with the values of one of Python."""
    return Enum(
        kind,
        name=name,
        schema=SCHEMA,
        values_callable=lambda members: [member.value for member in members],
        metadata=metadata,
    )


def id_column() -> Column[int]:
    """The id of a row, which the database gives."""
    return Column("id", BigInteger, Identity(always=True), primary_key=True)


def time_column(name: str, *, nullable: bool = True, now: bool = False) -> Column[datetime]:
    """A moment; `now` sets it when the row comes."""
    return Column(
        name,
        DateTime(timezone=True),
        nullable=nullable and not now,
        server_default=func.now() if now else None,
    )
