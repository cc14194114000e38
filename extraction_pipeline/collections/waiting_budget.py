"""How long the documents of a collection may wait for a provider before somebody looks."""

import re
from datetime import timedelta

DEFAULT = timedelta(hours=26)
"""A day, in which batches are to be done, and two hours for all that is around it."""

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=60)

_FORM = re.compile(r"(\d{1,6}(?:\.\d{1,6})?) ?(m|h|d)?")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def read_budget(value: object) -> timedelta:
    """A duration as it is written in a YAML: `26h`, `90m`, `2d`, or a number of hours.

    Raises `ValueError`.
    """
    written = _FORM.fullmatch(str(value).strip()) if _is_scalar(value) else None
    if written is None:
        raise ValueError("is no time such as 26h, 90m or 2d")
    number, unit = written.groups()
    budget = float(number) * _UNITS[unit or "h"]
    if not SHORTEST <= budget <= LONGEST:
        raise ValueError("is not between 1m and 60d")
    return budget


def shown(budget: timedelta) -> str:
    """The same in words."""
    return f"{budget / timedelta(hours=1):g} h"


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
