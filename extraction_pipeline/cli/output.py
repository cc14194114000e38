"""Where lines go: results to standard output, progress to standard error."""

import click


def say(line: str) -> None:
    """One line of progress for the person who waits."""
    click.echo(line, err=True)
