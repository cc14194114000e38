"""The versions of Dagster whose tables and events this package knows."""

from importlib.metadata import version

from extraction_pipeline.errors import ConfigurationError

TESTED_VERSIONS = {"dagster": "1.13.27", "dagster-postgres": "0.29.27"}
"""Writing in bulk goes below Dagster's public interface; a test compares with these two."""


def require_tested_versions() -> None:
    """Raise `ConfigurationError` where another Dagster is installed than the tests compare with."""
    other = [
        f"{name} {installed}"
        for name, tested in TESTED_VERSIONS.items()
        if (installed := version(name)) != tested
    ]
    if other:
        tested = " with ".join(f"{name} {number}" for name, number in TESTED_VERSIONS.items())
        raise ConfigurationError(
            f"Writing events in bulk was tested with {tested}; installed is {', '.join(other)}.",
            remedy="Install with -c constraints.txt, or write `postgres:` for `custom:` under "
            "`storage` in dagster.yaml, with the lines of its `config`: slower, with any version.",
        )
