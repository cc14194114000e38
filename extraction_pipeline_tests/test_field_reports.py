"""The table of field reports: every number has a row, and every test that a row names is there."""

import ast
import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
TABLE = (FOLDER / "field_reports.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TABLE.splitlines()
    if re.match(r"\| \d", line)
]
REPORT = re.compile(r"[\w.-]+/[\w.-]+#\d+|hookdeck\.com")
NAMED = re.compile(r"[Ff]ield reports? (\d+(?:(?:, | and )\d+)*)|test_rows?_(\d+)")


@cache
def names_in(path: str) -> frozenset[str]:
    tree = ast.parse((FOLDER / path).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_number_has_its_row_or_is_said_not_to_be_given() -> None:
    (left_out,) = re.findall(r"^Not given to any report of a fault: ([\d, ]+)\.$", TABLE, re.M)
    numbers = [int(row[0]) for row in ROWS]
    assert numbers == sorted(set(numbers))
    assert sorted([*numbers, *map(int, left_out.split(", "))]) == list(range(1, 75))


def test_every_row_is_whole_and_its_tests_are_there() -> None:
    for number, reports, fault, held in ROWS:
        assert all(REPORT.fullmatch(one) for one in reports.split(", ")), number
        assert fault, number
        if held.startswith("does not apply: "):
            continue
        for place in held.split(", "):
            path, _, name = place.strip("`").partition("::")
            assert name in names_in(path), f"{number}: {place}"


def test_a_report_that_a_test_names_is_in_the_table() -> None:
    known = {row[0] for row in ROWS}
    for path in FOLDER.rglob("test_*.py"):
        for several, one in NAMED.findall(path.read_text()):
            assert {one} if one else set(re.findall(r"\d+", several)) <= known, path
