"""Numbers of the command lines."""

import argparse


def positive(text: str) -> int:
    """A whole number from 1 on. Raises what argparse tells in one line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number
