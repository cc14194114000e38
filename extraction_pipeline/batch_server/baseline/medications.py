"""Medications in lists, tables and sentences: name, dose, route and frequency as written."""

import re
from dataclasses import dataclass

from extraction_pipeline.batch_server.baseline.dosage import DOSE, FREQUENCY, ROUTE
from extraction_pipeline.batch_server.baseline.drug_names import drug_spans, is_drug_word
from extraction_pipeline.batch_server.baseline.headings import words_of
from extraction_pipeline.batch_server.baseline.items import (
    Row,
    listing,
    one_line,
    sentences,
    table,
)
from extraction_pipeline.batch_server.baseline.names import named, plain
from extraction_pipeline.batch_server.baseline.negation import Saying, saying

_NAME_ENDS = re.compile(
    r",|;|\s(?:for|as|to be|until|which|that|because|secondary|due|per|with meals|then|and then|if"
    r"|x\s?[0-9]|has been|have been|was|were|is|are|in addition|at home|dose|doses)\b|:|\.\s|\.$",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(
    r"\b(?:with|on|finish|take|taking|takes|continue|continued|continuing|resume|resumed|start"
    r"|started|begin|begun|give|given|gave|receive|received|receiving|use|using|include|includes"
    r"|included|are|is|was|were|been|prescribed|prescriptions? for|scripts? for|administer"
    r"|administering|consider|add|added|to|doses? of|course of|of oral|as follows|off"
    r"|mixture of|tabs?\.?|caps?\.?|inj\.?|or|the|her|his|their|usual|home|new|also|oral"
    r"|po|p\.o\.|iv|im)[\s:]{1,3}",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"\s*(?:\b(?:increased|decreased|changed|reduced|titrated|raised|lowered|dosed?|given|started"
    r"|continued|tablets?|capsules?|suspension|(?:e(?:ye|ar) )?drops|infusion"
    r"|injection|at|of|a|an|to|by|from|and|or|in|the|total|via|max)|[(\-\u2013\u2014:,.])\s*$",
    re.IGNORECASE,
)
_GENERIC = re.compile(
    r"\b(?:medications?|medicines?|meds|drugs?|antibiotics?|treatments?|therapy|pain|prophylaxis"
    r"|fluids?|diet|activity|stockings|exercises?|follow|tolerated|patient|instructions|oxygen"
    r"|appointment|wound|weight|dressing|bath|shower|driving|lifting|labs?|none|he|she|they|we"
    r"|you|i|it|please|needed|patients|day|days|week|weeks|month|hours?|adults?|child|children"
    r"|plus|under|years?|efficacy|alternatives?|administration|infections?|disease|total|agents?)\b",
    re.IGNORECASE,
)
_CHANGED = re.compile(r"\b(?:increased?|decreased?|changed?|reduced?|titrated)\b", re.IGNORECASE)
_STOPPED = re.compile(
    r"\b(?:discontinued?|stopp?(?:ed)?|held|hold(?!er)|withh[eo]ld|off of|do not take|avoid)\b",
    re.IGNORECASE,
)
_NEW = re.compile(r"\b(?:new(?:ly)?|started?|begun|begin|initiated?|prescri\w+)\b", re.IGNORECASE)
_CONTINUED = re.compile(r"\b(?:continu\w+|resumed?|unchanged)\b", re.IGNORECASE)
_PART_BREAK = re.compile(r",\s+(?:and\s+)?|;\s*|\s+and\s+(?!then\b)|\s+plus\s+|\.\s+(?=[A-Z])")
_FORM = re.compile(
    r"\s(?:elixir|x[lr]|[csel]r|mdi|hcl|hydrochloride|sulfate|sodium|acetate|tartrate|succinate"
    r"|maleate|phosphate|chloride|inhaler|syrup|drip)\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"[0-9]")
_FIRST_WORD = re.compile(r"[A-Za-z][\w\-]{1,40}")
_ATTRIBUTE = re.compile(
    rf"\s*(?:{DOSE.pattern}|{FREQUENCY.pattern}|{ROUTE.pattern}|then\b|for\b|as\b|total\b|x\s?[0-9])",
    re.IGNORECASE,
)
_ENDS = (DOSE, ROUTE, FREQUENCY, _NAME_ENDS)
_COLUMNS = words_of(
    "medication medications medicine medicines drug brand dose dosage strength route frequency how "
    "often change instructions directions sig rxnorm"
)


@dataclass(frozen=True)
class FoundMedication:
    """A medication in the document's words. `words` is the piece of text that it stands in."""

    name: str
    dose: str | None
    route: str | None
    frequency: str | None
    words: str

    @property
    def details(self) -> int:
        """How many of dose, route and frequency are known."""
        return sum(value is not None for value in (self.dose, self.route, self.frequency))

    @property
    def is_stopped(self) -> bool:
        """Whether its words say that it is no longer taken."""
        return bool(_STOPPED.search(self.words))

    @property
    def is_changed(self) -> bool:
        """Whether its words say that the dose changed."""
        return bool(_CHANGED.search(self.words))

    @property
    def is_continued(self) -> bool:
        """Whether its words say that it goes on as before."""
        return bool(_CONTINUED.search(self.words))

    @property
    def is_new(self) -> bool:
        """Whether its words say that it was started."""
        return bool(_NEW.search(self.words))


def listed_medications(body: str) -> list[FoundMedication] | None:
    """The medications of a section that is there to list them.

    An empty list if the section states that there are none, `None` if it says nothing.
    """
    rows = table(body, _COLUMNS)
    found = [medication for row in rows if (medication := _from_row(row)) is not None]
    if found:
        return found
    parts = listing(body)
    said = {saying(cell) for row in rows for cell in row.cells.values() if cell}
    said |= {saying(parts.lead)} if parts.lead else set()
    for item in parts.items:
        if "|" not in item:
            said.add(saying(item))
            if saying(item) is Saying.SOMETHING:
                found += medications_in(item, is_listed=True, is_one=parts.is_marked)
    return found or ([] if Saying.NONE in said else None)


def medications_in(
    passage: str, *, is_listed: bool = False, is_one: bool = False
) -> list[FoundMedication]:
    """The medications of a passage, in order.

    `is_listed`: the passage is an item of a medication list, so an unknown name with or without
    a dose is one. Else only known drugs count, and unknown names that have a dose and a route or
    frequency. `is_one`: the passage is one entry, which is split only before a known drug that
    has its own dose.
    """
    found = []
    for position, sentence in enumerate(sentences(passage)):
        drugs = drug_spans(sentence)
        if not (is_listed or drugs or _DIGIT.search(sentence)):
            continue
        parts = _parts(sentence, is_one)
        # An unknown name without a dose is a drug only where it is all that an entry says.
        names_only = is_listed and position == 0 and (is_one or len(parts) == 1)
        for start, end in parts if is_listed else _by_drug(sentence, parts, drugs):
            known = next(
                ((a - start, b - start) for a, b in drugs if start <= a and b <= end), None
            )
            part = sentence[start:end]
            if known is not None:
                found.append(_known(part, known, is_listed))
            elif unknown := _unknown(part, is_listed, names_only):
                found.append(unknown)
    return [item for item in found if named(item.name) is not None]


def _parts(sentence: str, is_one: bool) -> list[tuple[int, int]]:
    """Where `sentence` falls into mentions: at commas and the like, unless a detail follows."""
    starts = [0]
    for match in _PART_BREAK.finditer(sentence):
        rest = sentence[match.end() : match.end() + 60]
        word = _FIRST_WORD.match(rest)
        if word is None or _ATTRIBUTE.match(rest):
            continue
        if match[0].startswith("."):
            # After an abbreviation such as "b.i.d." a new medication has a dose of its own.
            breaks = DOSE.search(rest) is not None
        else:
            is_drug = is_drug_word(word[0])
            in_series = match[0].startswith(",") or len(starts) > 1
            breaks = not is_one or (is_drug and (in_series or DOSE.search(rest) is not None))
        if breaks:
            starts.append(match.end())
    return list(zip(starts, [*starts[1:], len(sentence)], strict=True))


def _by_drug(
    sentence: str, parts: list[tuple[int, int]], drugs: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The parts cut once more, before each drug after a part's first that is not in brackets."""
    cuts = []
    for start, end in parts:
        inner = [a for a, _ in drugs if start <= a < end and sentence[a - 1 : a] != "("][1:]
        cuts += list(zip([start, *inner], [*inner, end], strict=True))
    return cuts


def _known(part: str, drug: tuple[int, int], is_listed: bool) -> FoundMedication:
    """The mention of a known drug. In a list the name may have more words than are known."""
    start, known_end = drug
    if form := _FORM.match(part, known_end):
        known_end = form.end()
    end = max(_end_of_name(part, start), known_end) if is_listed else known_end
    name = _trimmed(part[start:end])
    if len(name) < known_end - start or len(name.split()) > 4 or _GENERIC.search(name):
        name = part[start:known_end]
    return _mention(part, name, DOSE.search(part, end) or DOSE.search(part))


def _unknown(part: str, is_listed: bool, names_only: bool) -> FoundMedication | None:
    """The mention of a name that is no known drug, if its place or its details make it one."""
    dose = DOSE.search(part) if is_listed or _DIGIT.search(part) else None
    if dose is None and not is_listed:
        return None
    start = _start_of_unknown(part, dose)
    name = _trimmed(part[start : _end_of_name(part, start)])
    words = name.split()
    if not 1 <= len(words) <= 5 or len(name) < 3 or not name[0].isalpha():
        return None
    if _GENERIC.search(name) or FREQUENCY.fullmatch(name) or ROUTE.fullmatch(name):
        return None
    detailed = ROUTE.search(part) or FREQUENCY.search(part)
    dosed = dose and (detailed or (is_listed and not dose[0].endswith("%")))
    # "Review: in two weeks" is a label and what it says.
    is_name = names_only and len(words) <= 4 and ":" not in part
    if not (dosed or is_name):
        return None
    return _mention(part, name, dose)


def _mention(part: str, name: str, dose: re.Match[str] | None) -> FoundMedication:
    if dose and dose[0].endswith("%"):
        # A strength, unless nothing else says how much.
        dose = DOSE.search(part, dose.end()) or dose
    route, frequency = ROUTE.search(part), FREQUENCY.search(part)
    return FoundMedication(
        name=named(name) or one_line(name),
        dose=dose[0] if dose else None,
        route=route[0] if route else None,
        frequency=frequency[0] if frequency else None,
        words=part.strip(" \t\r\n,;"),
    )


def _end_of_name(part: str, start: int) -> int:
    ends = [match.start() for pattern in _ENDS if (match := pattern.search(part, start + 1))]
    return min(ends, default=len(part))


def _start_of_unknown(part: str, dose: re.Match[str] | None) -> int:
    before = part[: dose.start()] if dose and dose.start() else part
    starts = [match.end() for match in _LEADS_IN.finditer(before)]
    return max((start for start in starts if start < len(before.rstrip())), default=0)


def _trimmed(name: str) -> str:
    name = plain(name).strip("*_ \t\r\n")
    for _ in range(4):
        shorter = _TRAILING.sub("", name).strip()
        if shorter == name:
            break
        name = shorter
    return name


def _from_row(row: Row) -> FoundMedication | None:
    # Beside a code stands the drug; what stands before may be the group that it belongs to.
    cell = row.cell("medication", "medicine", "drug", "name") or row.coded_description()
    if cell is None or saying(cell) is not Saying.SOMETHING or (name := named(cell)) is None:
        return None
    mentions = medications_in(name, is_listed=True, is_one=True)
    read = mentions[0] if mentions else None
    instructions = row.cell("instructions", "directions", "sig") or ""
    frequency = FREQUENCY.search(instructions)
    route = ROUTE.search(instructions)
    return FoundMedication(
        name=name if read is None else read.name,
        dose=row.cell("dose", "dosage") or (read.dose if read else None),
        route=row.cell("route") or (read.route if read else None) or (route[0] if route else None),
        frequency=row.cell("frequency", "often")
        or (read.frequency if read else None)
        or (frequency[0] if frequency else None),
        words=row.line,
    )
