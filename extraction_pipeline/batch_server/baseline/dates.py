"""Dates in running text, and the ISO date where the document leaves no doubt about it."""

import re
from datetime import date

from extraction_pipeline.schemas.dates import StatedDate

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
)
DATE = re.compile(
    r"(?<![\w/.])(?:"
    r"(?P<y1>(?:19|20)[0-9]{2})[-/](?P<m1>[0-9]{1,2})[-/](?P<d1>[0-9]{1,2})"
    r"|(?P<a>[0-9]{1,2})(?P<sep>[-/.])(?P<b>[0-9]{1,2})(?P=sep)(?P<y2>(?:19|20)[0-9]{2}|[0-9]{2})"
    rf"|(?P<m3>{_MONTH})\s{{1,3}}(?P<d3>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s{{1,3}}(?P<y3>[0-9]{{4}})"
    rf"|(?P<d4>[0-9]{{1,2}})(?:st|nd|rd|th)?[\s-]{{1,3}}(?P<m4>{_MONTH}),?[\s-]{{1,3}}(?P<y4>[0-9]{{4}})"
    rf"|(?P<y5>[0-9]{{4}})\s{{1,2}}(?P<m5>{_MONTH})(?:\s{{1,2}}(?P<d5>[0-9]{{1,2}}))?"
    rf"|(?P<m6>{_MONTH})\s{{1,2}}(?P<y6>(?:19|20)[0-9]{{2}})"
    r")(?![\w/])",
    re.IGNORECASE,
)
"""A date as documents write it; which groups are set says how."""


def stated_date(match: re.Match[str], text: str) -> StatedDate:
    """The date that `DATE` matched, with its ISO date if it has but one reading in `text`."""
    return StatedDate(as_written=match[0], iso=_iso(match, text))


def first_date(passage: str, text: str) -> StatedDate | None:
    """The first date of `passage`, a piece of `text`."""
    match = DATE.search(passage)
    return stated_date(match, text) if match else None


def _iso(match: re.Match[str], text: str) -> str | None:
    if match["y1"]:
        return _valid(match["y1"], match["m1"], match["d1"])
    if match["y2"]:
        if len(match["y2"]) != 4:
            return None
        first, second = int(match["a"]), int(match["b"])
        if first == second or second > 12 or (first <= 12 and _month_comes_first(text)):
            return _valid(match["y2"], match["a"], match["b"])
        if first > 12 or _day_comes_first(text):
            return _valid(match["y2"], match["b"], match["a"])
        return None
    for form in "345":
        month, day = match[f"m{form}"], match[f"d{form}"]
        if month and day:
            number = _MONTHS.index(month[:3].lower()) + 1
            return _valid(match[f"y{form}"], number, day)
    return None


def _valid(year: str | int, month: str | int, day: str | int) -> str | None:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return None


def _month_comes_first(text: str) -> bool:
    month_first, day_first = _orders(text)
    return month_first and not day_first


def _day_comes_first(text: str) -> bool:
    month_first, day_first = _orders(text)
    return day_first and not month_first


def _orders(text: str) -> tuple[bool, bool]:
    """Whether some date of `text` must be month before day, and some other day before month."""
    month_first = day_first = False
    for match in DATE.finditer(text, 0, 200_000):
        if match["a"]:
            month_first |= int(match["b"]) > 12 >= int(match["a"])
            day_first |= int(match["a"]) > 12 >= int(match["b"])
    return month_first, day_first
