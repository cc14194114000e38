"""Numbers and folders of the command lines."""

import argparse
from pathlib import Path


def positive(text: str) -> int:
    """A whole number from 1 on. Raises what argparse tells in one line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def empty_folder(text: str) -> Path:
    """A folder without anything in it, which is made if it is not there. Raises the same."""
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        holds_something = any(folder.iterdir())
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{folder}: {error.strerror}") from None
    if holds_something:
        raise argparse.ArgumentTypeError(f"{folder} is not empty")
    return folder
