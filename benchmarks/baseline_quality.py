"""Measures the rules baseline against annotated documents: precision and recall per field.

    python benchmarks/baseline_quality.py CORPUS_DIR [--json] [--set NAME]

`CORPUS_DIR/gold/gold.jsonl` holds one annotated document a line:

    {"doc": "folder/file.txt", "set": "name", "annotated_fields": [...], "fields": {...},
     "optional_medications": [...], "must_not_report": [...]}

Scoring
- Only `annotated_fields` count. In them `null` and `[]` mean that the document does not state
  the field, so a value there is an invention: it counts against precision.
- List items are matched one to one: two names match if they are equal or one contains the other
  as whole words, letter case and punctuation aside. Names as coded in a terminology (sets `ccda`
  and `synthea`) also match on their first word.
- Texts match if one contains the other or if they share half of their words; doses, routes and
  frequencies only if one contains the other. Dates match as written or as ISO dates.
- `medications.dose`, `.route` and `.frequency` are scored on matched medications. A null in the
  annotation counts as absent in the set `mtsamples` only; elsewhere it is not annotated.
- `optional_medications` are neither right nor wrong. What `must_not_report` names is counted in
  `traps`. The set `maccrobat` annotates mentions broadly: its precision says little, and is not
  printed. Medications that the baseline reports as stopped are not counted as reported.
"""

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from extraction_pipeline.batch_server.baseline import extract
from extraction_pipeline.documents.reading import ReadableText, read_document

NAME_FIELDS = {
    "diagnoses": "name",
    "procedures": "name",
    "medications": "name",
    "allergies": "substance",
}
DATE_FIELDS = ("admission_date", "discharge_date", "encounter_date")
TEXT_FIELDS = ("disposition", "follow_up")
DETAILS = ("dose", "route", "frequency")
CODED_SETS = frozenset({"ccda", "synthea"})
RECALL_ONLY_SETS = frozenset({"maccrobat"})
SET_WITH_ABSENT_DETAILS = "mtsamples"
_WORD = re.compile(r"[^\W_]+")


@dataclass
class Tally:
    """Counts of one field in one set."""

    right: int = 0
    reported: int = 0
    annotated: int = 0

    @property
    def precision(self) -> float | None:
        """Share of what was reported that is right."""
        return self.right / self.reported if self.reported else None

    @property
    def recall(self) -> float | None:
        """Share of what is annotated that was reported."""
        return self.right / self.annotated if self.annotated else None


@dataclass
class SetResult:
    """Everything counted in one set."""

    documents: int = 0
    unreadable: int = 0
    traps: int = 0
    fields: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))


def words(text: str) -> list[str]:
    """The words of `text`, letter case and punctuation aside."""
    return _WORD.findall(text.casefold())


def names_match(reported: str, annotated: str, *, coded: bool) -> bool:
    """Whether two names mean the same by the rules above."""
    ours, theirs = words(reported), words(annotated)
    if not ours or not theirs:
        return False
    return one_contains_the_other(reported, annotated) or (coded and ours[0] == theirs[0])


def one_contains_the_other(reported: str, annotated: str) -> bool:
    """Whether the words of one stand in the other, in order and unbroken."""
    ours, theirs = words(reported), words(annotated)
    return _contains(ours, theirs) or _contains(theirs, ours)


def texts_match(reported: str, annotated: str) -> bool:
    """Whether two texts say the same by the rules above."""
    if one_contains_the_other(reported, annotated):
        return True
    ours, theirs = words(reported), words(annotated)
    shared = len(set(ours) & set(theirs))
    return shared * 2 >= max(len(set(ours)), len(set(theirs)), 1)


def _contains(whole: Sequence[str], part: Sequence[str]) -> bool:
    size = len(part)
    return size > 0 and any(
        list(whole[start : start + size]) == list(part) for start in range(len(whole) - size + 1)
    )


def pairs(reported: list[str], annotated: list[str], *, coded: bool) -> list[tuple[int, int]]:
    """One-to-one matches by position, equal names before others."""
    found: list[tuple[int, int]] = []
    for exact in (True, False):
        for ours, name in enumerate(reported):
            for theirs, gold in enumerate(annotated):
                taken = any(ours == left or theirs == right for left, right in found)
                equal = words(name) == words(gold)
                if not taken and (equal if exact else names_match(name, gold, coded=coded)):
                    found.append((ours, theirs))
    return found


def score(gold: dict[str, Any], record: dict[str, Any], result: SetResult) -> None:
    """Count one document."""
    set_name, fields = gold["set"], gold["fields"]
    for name in gold["annotated_fields"]:
        if name in NAME_FIELDS:
            score_list(name, gold, record.get(name) or [], result)
        elif name in DATE_FIELDS:
            score_value(result.fields[name], _dates(record.get(name)), fields.get(name))
        elif name in TEXT_FIELDS:
            score_text(result.fields[name], record.get(name), fields.get(name))
    report = json.dumps(record, ensure_ascii=False)
    result.traps += sum(
        _contains(words(report), words(_trap_text(trap)))
        for trap in gold.get("must_not_report", [])
    )
    result.documents += 1
    if set_name in RECALL_ONLY_SETS:
        for tally in result.fields.values():
            tally.reported = 0


def _trap_text(trap: object) -> str:
    return str(trap.get("name", trap)) if isinstance(trap, dict) else str(trap)


def score_list(
    name: str, gold: dict[str, Any], items: list[dict[str, Any]], result: SetResult
) -> None:
    """Count the names of a list, and the details of medications."""
    coded = gold["set"] in CODED_SETS
    expected = gold["fields"].get(name) or []
    theirs = [item["name"] if isinstance(item, dict) else item for item in expected]
    items = [item for item in items if item.get("status") != "stopped"]
    if name == "medications":
        optional = gold.get("optional_medications", [])
        items = [item for item in items if not _is_optional(item["name"], optional, theirs)]
    ours = [item[NAME_FIELDS[name]] for item in items]
    matched = pairs(ours, theirs, coded=coded)
    tally = result.fields[name]
    tally.right += len(matched)
    tally.reported += len(ours)
    tally.annotated += len(theirs)
    if name == "medications":
        for left, right in matched:
            score_details(gold["set"], items[left], expected[right], result)


def _is_optional(name: str, optional: list[str], annotated: list[str]) -> bool:
    if any(names_match(name, gold, coded=False) for gold in annotated):
        return False
    return any(names_match(name, other, coded=False) for other in optional)


def score_details(
    set_name: str, item: dict[str, Any], expected: dict[str, Any], result: SetResult
) -> None:
    """Count dose, route and frequency of a matched medication."""
    for detail in DETAILS:
        annotated = expected.get(detail)
        if annotated is None and set_name != SET_WITH_ABSENT_DETAILS:
            continue
        tally = result.fields[f"medications.{detail}"]
        score_text(tally, item.get(detail), annotated, match=one_contains_the_other)


def score_text(
    tally: Tally,
    reported: str | None,
    annotated: str | None,
    match: Callable[[str, str], bool] = texts_match,
) -> None:
    """Count one text."""
    tally.reported += bool(reported)
    tally.annotated += bool(annotated)
    tally.right += bool(reported and annotated and match(reported, annotated))


def score_value(tally: Tally, reported: set[str], annotated: str | None) -> None:
    """Count one date."""
    tally.reported += bool(reported)
    tally.annotated += bool(annotated)
    tally.right += bool(annotated and annotated in reported)


def _dates(stated: dict[str, str | None] | None) -> set[str]:
    return {value for value in (stated or {}).values() if value}


def read_gold(corpus: Path) -> Iterator[dict[str, Any]]:
    """The annotated documents of a corpus."""
    with (corpus / "gold" / "gold.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def measure(corpus: Path, schema_name: str, only: str | None) -> dict[str, SetResult]:
    """Run the baseline on every annotated document and count."""
    results: dict[str, SetResult] = defaultdict(SetResult)
    for gold in read_gold(corpus):
        if only and gold["set"] != only:
            continue
        path = corpus / gold["doc"]
        read = read_document(path.read_bytes(), path.name)
        result = results[gold["set"]]
        if not isinstance(read, ReadableText):
            result.unreadable += 1
            continue
        record = extract(schema_name, read.text)
        if record is None:
            raise SystemExit(f"There are no rules for the schema {schema_name}.")
        score(gold, record, result)
    return dict(results)


def as_json(results: dict[str, SetResult]) -> dict[str, Any]:
    """The results as plain values."""
    return {
        name: {
            "documents": result.documents,
            "unreadable": result.unreadable,
            "traps": result.traps,
            "fields": {
                field_name: {
                    "precision": None if name in RECALL_ONLY_SETS else tally.precision,
                    "recall": tally.recall,
                    "right": tally.right,
                    "reported": tally.reported,
                    "annotated": tally.annotated,
                }
                for field_name, tally in result.fields.items()
            },
        }
        for name, result in results.items()
    }


def print_table(results: dict[str, SetResult]) -> None:
    """The results as a table on standard output."""
    out = sys.stdout.write
    for name, result in results.items():
        out(f"{name}: {result.documents} documents, {result.unreadable} unreadable, ")
        out(f"{result.traps} traps reported\n")
        out(f"  {'field':<24}{'precision':>10}{'recall':>8}")
        out(f"{'right':>7}{'reported':>10}{'gold':>6}\n")
        for field_name, tally in result.fields.items():
            precision = None if name in RECALL_ONLY_SETS else tally.precision
            out(f"  {field_name:<24}{_share(precision):>10}{_share(tally.recall):>8}")
            out(f"{tally.right:>7}{tally.reported:>10}{tally.annotated:>6}\n")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def main() -> None:
    """Parse the command line, measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", type=Path, help="folder with gold/gold.jsonl and the documents")
    parser.add_argument("--set", help="measure this set only")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    if not (arguments.corpus / "gold" / "gold.jsonl").is_file():
        parser.error(f"there is no gold/gold.jsonl in {arguments.corpus}")
    results = measure(arguments.corpus, "discharge_summary", arguments.set)
    if arguments.json:
        json.dump(as_json(results), sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        print_table(results)


if __name__ == "__main__":
    main()
