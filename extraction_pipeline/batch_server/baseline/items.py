"""Lists and tables within a section, as pieces of the document's own text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from extraction_pipeline.batch_server.baseline.headings import words_of

MOST_ITEMS = 400
"""Of one section. A longer list is cut: a baseline's answer must stay bounded."""

_LONGEST_BODY = 60_000
_LONGEST_STATEMENT = 3_000
_BULLET = re.compile(
    r"[ \t]{0,12}(?:[-*•・●▪◦\u2013·]|\(?[0-9]{1,2}[.)]|\(?[A-Za-z][.)]|\(?[ivx]{2,5}[.)])[ \t]+"
)
_RUN_IN_NUMBER = re.compile(r"[0-9]{1,2}[.)]\s+")
_BEFORE_NUMBER = frozenset(" \t\n,.:;")
_STOP = re.compile(r"[.!?;][\s,]+(?=[\"'\u2018\u201c*]{0,3}[A-Z]|[0-9(•\-])")
_WORD_BEFORE_STOP = re.compile(r"[\w)%\"']{2}$")
_ABBREVIATIONS = ("Dr", "Mr", "Ms", "Mrs", "No", "vs", "St")
COLUMN_WORDS = words_of(
    "name description code codes system status date dates time range start end stop effective type "
    "details comment comments reported entered by severity value location site target performer "
    "performed onset age service delivery note notes group and unit units observation result loinc "
    "snomed ct cpt icd cm susceptibility dose dosage strength route frequency how often "
    "instructions directions reaction reactions"
)
"""Words that the headings of any table's columns consist of."""
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_WRAPPED_WIDTH = 60
_BROKEN_WIDTH = 40


@dataclass(frozen=True)
class Row:
    """A row of a table: its cells by the lower-case words of their column's heading."""

    cells: dict[str, str]
    line: str

    def cell(self, *words: str) -> str | None:
        """The cell of the first column whose heading has one of `words`; blank counts as none."""
        for word in words:
            for heading, value in self.cells.items():
                if word in heading.split():
                    return value or None
        return None

    def coded_description(self) -> str | None:
        """The words beside a code in a table that describes codes; none where codes go on."""
        is_first = next(iter(self.cells.values()), "") != ""
        return self.cells.get("code description") if is_first else None


@dataclass(frozen=True)
class Listing:
    """What a section holds: an introduction, its items, and whether they were marked as such."""

    lead: str
    items: list[str]
    is_marked: bool


def one_line(text: str) -> str:
    """`text` with every run of white space as one space."""
    return " ".join(text.split())


def sentences(text: str) -> list[str]:
    """The sentences of running text. Abbreviations such as `b.i.d.` and `Dr.` do not end one."""
    text = text[:_LONGEST_BODY]
    starts = [0]
    for match in _STOP.finditer(text):
        before = text[max(0, match.start() - 4) : match.start()]
        if _WORD_BEFORE_STOP.search(before) and not _is_abbreviation(before):
            starts.append(match.end())
    parts = [text[a:b].strip(" \t\r\n,") for a, b in zip(starts, [*starts[1:], None], strict=True)]
    return [part for part in parts if part.strip(".")]


def _is_abbreviation(before: str) -> bool:
    return before.endswith(_ABBREVIATIONS) and re.split(r"\W", before)[-1] in _ABBREVIATIONS


def listing(body: str) -> Listing:
    """The items of a section, by bullets, by numbers within a line, or else line by line."""
    body = body[:_LONGEST_BODY]
    numbered = _run_in_numbers(body)
    if numbered:
        lead = body[: numbered[0][0]].strip(" \t\r\n,")
        starts = [end for _, end in numbered]
        ends = [start for start, _ in numbered[1:]] + [len(body)]
        found = [body[begin:end].strip(" \t\r\n,") for begin, end in zip(starts, ends, strict=True)]
        return Listing(lead, [item for item in found if item][:MOST_ITEMS], is_marked=True)
    return _by_lines(body)


def statements(body: str) -> list[str]:
    """The statements of a section: its marked items, else its sentences, in order.

    Lines of running text that was broken to a width are read together; short lines stand alone.
    """
    parts = listing(body)
    if parts.is_marked:
        return [*(sentences(parts.lead) if parts.lead else ()), *parts.items]
    lines = [line for line in body[:_LONGEST_BODY].splitlines() if line.strip()]
    is_wrapped = sum(len(line) > _WRAPPED_WIDTH for line in lines) * 2 >= len(lines)
    passages = _BLANK_LINE.split(body[:_LONGEST_BODY]) if is_wrapped else lines
    return [sentence for passage in passages for sentence in sentences(passage)][:MOST_ITEMS]


def unmarked(words: str) -> str | None:
    """A statement on one line, without its bullet and emphasis; `None` if no words are left."""
    line = one_line(words).strip("-•*_# ")
    return line if 3 <= len(line) <= _LONGEST_STATEMENT and any(map(str.isalpha, line)) else None


def table(body: str, headings: frozenset[str]) -> list[Row]:
    """The rows of the tables in `body` whose cells are parted by `|`.

    A row is a heading if half of its cells consist of column words alone, `headings` or those of
    any table. Rows before the first heading are left out.
    """
    known_words = headings | COLUMN_WORDS
    rows: list[Row] = []
    columns: list[str] = []
    edged = False
    for line in body[:_LONGEST_BODY].splitlines():
        if "|" not in line:
            continue
        cells = [one_line(cell) for cell in line.split("|")]
        # Markdown draws a stroke at both edges; elsewhere one at the beginning ends a blank cell,
        # as in the further codings of the entry above.
        without_edge = cells[1:] if not cells[0] else cells
        names = [" ".join(re.findall(r"[a-z]+", cell.lower())) for cell in without_edge]
        known = sum(bool(name) and known_words.issuperset(name.split()) for name in names)
        if known and known * 2 >= sum(map(bool, without_edge)):
            columns = names
            edged = len(without_edge) < len(cells)
        elif columns:
            cells = without_edge if edged else cells
            rows.append(Row(dict(zip(columns, cells, strict=False)), line.strip()))
        if len(rows) >= MOST_ITEMS:
            break
    return rows


def _run_in_numbers(body: str) -> list[tuple[int, int]]:
    """The spans of the numbers 1, 2, 3 … that enumerate, in order; empty unless there are two."""
    spans: list[tuple[int, int]] = []
    for match in _RUN_IN_NUMBER.finditer(body):
        start = match.start()
        if start and body[start - 1] not in _BEFORE_NUMBER:
            continue
        if int(match[0].rstrip(" \t\r\n.)")) == len(spans) + 1:
            spans.append(match.span())
    return spans if len(spans) > 1 or (spans and spans[0][0] == 0) else []


def _by_lines(body: str) -> Listing:
    spans: list[tuple[int, int]] = []
    marked = False
    lead_end = 0
    open_item = open_text = False
    for start, end, is_bullet in _lines(body):
        text = body[start:end]
        if is_bullet:
            if not marked:
                lead_end = spans[-1][1] if spans else 0
                spans = []
                marked = True
            spans.append((start, end))
            open_item, open_text = True, False
        elif not text.strip():
            open_item = open_text = False
        elif (
            open_text
            or (open_item and _goes_on(body, start))
            or (not marked and _is_wrapped(body, spans, start))
        ):
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))
            open_item, open_text = False, marked
        if len(spans) >= MOST_ITEMS:
            break
    items = [body[start:end].strip() for start, end in spans]
    return Listing(body[:lead_end].strip(), [item for item in items if item], marked)


def _goes_on(body: str, start: int) -> bool:
    """Whether a line goes on with the item above it: it is indented, or begins in lower case."""
    return body[start - 1 : start] in (" ", "\t") or body[start].islower()


def _is_wrapped(body: str, spans: list[tuple[int, int]], start: int) -> bool:
    """Whether a line is the rest of a long one above that was broken to a width."""
    if not spans:
        return False
    above = spans[-1]
    last_line = body[above[0] : above[1]].rpartition("\n")[2]
    follows = body[above[1] : start].count("\n") == 1
    return (
        follows
        and body[start].islower()
        and len(last_line) > _BROKEN_WIDTH
        and last_line[-1] not in ".;:|"
    )


def _lines(body: str) -> Iterator[tuple[int, int, bool]]:
    """Start, end and bullet of every line, without its bullet and the space around it."""
    offset = 0
    for line in body.splitlines(keepends=True):
        bullet = _BULLET.match(line)
        begin = bullet.end() if bullet else len(line) - len(line.lstrip())
        yield offset + begin, offset + len(line.rstrip()), bullet is not None
        offset += len(line)
