"""The URL of the database, as the environment has it. Pure."""

from sqlalchemy import URL
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from extraction_pipeline.errors import ConfigurationError

_FORM = "Write it as postgresql://user:password@host:5432/name"


def parse_database_url(url: str) -> URL:
    """Raises `ConfigurationError`, which holds nothing of the URL but its kind."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "EXTRACTION_DATABASE_URL is not a database URL.",
            remedy=f"{_FORM}, and an @ in user or password as %40.",
        ) from None
    if not parsed.drivername.startswith("postgresql"):
        raise ConfigurationError(
            f"EXTRACTION_DATABASE_URL names {parsed.drivername}; only PostgreSQL works.",
            remedy=f"{_FORM}.",
        )
    if "@" in f"{parsed.host}{parsed.database}":
        # What stands before it is the end of a password, and would be shown as a host or a name.
        raise ConfigurationError(
            "EXTRACTION_DATABASE_URL has an @ more than the one before the host.",
            remedy=f"{_FORM}, with %40 for an @, %2F for a / and %25 for a % in user and password.",
        )
    return parsed
