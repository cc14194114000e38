"""Where lines go: results to standard output, progress to standard error."""

import click


def say(line: str) -> None:
    """One line of progress for the person who waits."""
    click.echo(line, err=True)


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as `1 request` and `1,200 requests`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
