"""Diagnoses: from the items of a list, and from sentences that say that something was found."""

import re
from collections.abc import Callable, Iterator

from extraction_pipeline.batch_server.baseline.headings import words_of
from extraction_pipeline.batch_server.baseline.items import (
    listing,
    one_line,
    sentences,
    table,
)
from extraction_pipeline.batch_server.baseline.names import named, plain
from extraction_pipeline.batch_server.baseline.negation import Saying, saying
from extraction_pipeline.schemas.discharge_summary import Diagnosis

_LONGEST_NAME = 160
_COLUMNS = frozenset(("diagnosis", "diagnoses", "problem", "problems", "encounter", "condition"))
_SUBORDINATE = re.compile(
    r",?\s(?:which|who|that|for which|most likely|status post which)\s"
    r"|\s[-\u2013\u2014]\s|;\s|\s\(?(?=BMI\b)"
)
_LIST_BREAK = re.compile(r",\s+(?:and\s+)?|\s+and\s+(?=(?:status post|history of|possible)\b)")
_QUALIFIES = re.compile(
    r"(?:right|left|bilateral|both|anterior|posterior|upper|lower|acute|chronic|stage|type|grade"
    r"|class|unspecified|with|without|due|secondary|likely|probably|resolv\w+|improv\w+|stable"
    r"|initial|subsequent|currently|now|on|in|of|at|by|but|not|mild|moderate|severe|nos|rule"
    r"|including|post|such|well|poorly|status:|onset|etiology|controlled)\b",
    re.IGNORECASE,
)
_LEADS_IN = re.compile(
    r"^(?:(?:also|and|with|possible|probable|(?:most )?likely)\s+)?(?:due to\s+)?"
    r"(?:a\s+|an\s+|the\s+)?"
    r"(?:(?:also\s+)?(?:history|hx|h/o) of (?=[A-Z][a-z]+'s\b)|axis [ivx]+:\s*)?",
    re.IGNORECASE,
)
_NARRATES = re.compile(
    r"^(?:the|this|that|these|he|she|they|we|it|his|her|patient|please|see|as|mr|mrs|ms|dr"
    r"|continue|plan|will|we'll|i|for|in|on|at|there|bmi|deferred|none|no"
    r"|global assessment|goal|rule out"
    r"|r/o|ruled out|family history|status:)\b",
    re.IGNORECASE,
)
_IS_SENTENCE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|will|can|should|continue|increase|reports?|recommend\w*"
    r"|order|presents?|start|discuss\w*|made|worse)\b|: ",
    re.IGNORECASE,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_RANK = re.compile(
    r"^(?:principal|primary|main|final|secondary|other)(?: diagnos[ie]s)?:\s*", re.IGNORECASE
)
_TAG = re.compile(
    r"\s*\((?:disorder|finding|situation|procedure|regime/therapy|[^)]{0,30}"
    r"(?:SNOMED|ICD)[^)]{0,40})\)\s*$",
    re.IGNORECASE,
)
_STATED = re.compile(
    r"\b(?:diagnosed with|diagnosis of|known to have|found to have|suffer(?:s|ed|ing) from"
    r"|history of|consistent with|diagnosis was|presenting with)\s+"
    r"(?:an?\s+|the\s+|his\s+|her\s+)?([A-Za-z][^.;:,()\n]{2,90})",
    re.IGNORECASE,
)
_DISEASE_ENDINGS = tuple(
    words_of("itis oma omas emia aemia osis opathy sclerosis plegia algia opsia penia uria")
)
_DISEASE_WORDS = words_of(
    "disease syndrome cancer failure deficiency insufficiency diabetes hypertension infarction "
    "fibrillation pneumonia infection stroke asthma embolism fistula effusion haemorrhage "
    "hemorrhage epilepsy seizure seizures dementia depression arrest dysfunction obesity abscess "
    "ulcer ulcers fracture neoplasm tuberculosis malaria hypothyroidism hyperthyroidism"
)
_WORD = re.compile(r"[A-Za-z][A-Za-z'\u2019\-]{2,30}")
_COMMON_WORD = re.compile(
    r"(?:an?|the|and|or|of|with|had|has|his|her|their|from|for|due|was|were|is|by|after|acute onset"
    r"|possible|including|developed|severe|secondary|which|that|this|these|other|in|to|any|known"
    r"|causing|showed|revealed|having|both|some|such|as|on|he|she|patient|underlying|prior|new"
    r"|further|diagnosed|suspected|subsequent|concomitant|associated|because|into|revealing)",
    re.IGNORECASE,
)
_NAME_STOPS = re.compile(
    r"\s(?:and (?:was|is|has|had|he|she|the|a)|who|which|that|was|were|is|had|has|made|based|after"
    r"|before|since|when|where|by|from|at|on|for|as|in (?:19|20)[0-9]{2}|with (?:a|an|no|the)"
    r"|presented|presents|underwent|admitted|treated)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no|not|denie[sd]|without|never|negative for|ruled? out|family|father|mother|brother"
    r"|sister|absence of)\b[^.]{0,60}$",
    re.IGNORECASE,
)


def diagnoses_in(body: str) -> list[Diagnosis]:
    """The diagnoses of a section that is there to list them."""
    rows = table(body, _COLUMNS)
    if rows:
        cells = (
            (
                row.cell(
                    "diagnosis",
                    "diagnoses",
                    "problem",
                    "problems",
                    "name",
                    "description",
                    "encounter",
                    "condition",
                ),
                row.line,
            )
            for row in rows
        )
        return [
            Diagnosis(name=name, evidence=[line])
            for cell, line in cells
            if cell and saying(cell) is Saying.SOMETHING and (name := _named(cell))
        ]
    return [Diagnosis(name=name, evidence=[words]) for words, name in _from_listing(body)]


def named_in_prose(text: str) -> list[Diagnosis]:
    """Diagnoses that sentences state ("diagnosed with ..."), unless they deny them."""
    return [
        Diagnosis(name=name, evidence=[match[0]])
        for match in _undenied(_STATED, text)
        if (name := _TAG.sub("", one_line(_NAME_STOPS.split(match[1], maxsplit=1)[0]).strip()))
        and len(name) >= 3
        and len(name.split()) <= 8
        and not _IS_SENTENCE.search(name)
    ]


def mentioned_in_prose(text: str) -> list[Diagnosis]:
    """Diseases that running text mentions, unless it denies them: for text without headings."""
    found = []
    for match in _undenied(_WORD, text, _is_disease_word):
        start = match.start()
        for before in reversed(list(_WORD.finditer(match.string, max(0, start - 60), start))[-2:]):
            if _COMMON_WORD.fullmatch(before[0]) or match.string[before.end() : start] != " ":
                break
            start = before.start()
        name = match.string[start : match.end()]
        if " " in name or name.casefold() not in _DISEASE_WORDS:
            found.append(Diagnosis(name=name, evidence=[name]))
    return found


def _is_disease_word(match: re.Match[str]) -> bool:
    word = match[0].casefold()
    return word in _DISEASE_WORDS or (len(word) > 6 and word.endswith(_DISEASE_ENDINGS))


def _undenied(
    pattern: re.Pattern[str], text: str, accepts: Callable[[re.Match[str]], bool] = bool
) -> Iterator[re.Match[str]]:
    for match in pattern.finditer(text):
        # What denies it stands before it in the same sentence, or is its own first word.
        end = match.start() + len("history")
        if accepts(match) and not _DENIED.search(text, max(0, end - 90), end):
            yield match


def _from_listing(body: str) -> Iterator[tuple[str, str]]:
    parts = listing(body)
    if parts.is_marked:
        for passage in _BLANK_LINE.split(parts.lead):
            for sentence in sentences(passage)[:1]:
                yield from _split(sentence)
        for item in parts.items:
            first = sentences(item)[:1]
            if first and (name := _named(first[0])):
                yield first[0], name
        return
    for line in parts.items:
        for sentence in sentences(line)[:3]:
            yield from _split(sentence)


def _split(sentence: str) -> Iterator[tuple[str, str]]:
    starts = [0]
    for match in _LIST_BREAK.finditer(sentence):
        before = sentence[: match.start()]
        in_brackets = before.count("(") > before.count(")")
        if not in_brackets and not _QUALIFIES.match(sentence, match.end()):
            starts.append(match.end())
    for start, end in zip(starts, [*starts[1:], len(sentence)], strict=True):
        words = sentence[start:end].strip(" ,")
        if name := _named(words):
            yield words, name


def _named(words: str) -> str | None:
    """The diagnosis in `words`, or `None` where they are no name of one."""
    line = _RANK.sub("", one_line(plain(words)).strip(" .,-•"), count=1)
    if _NARRATES.match(line) or saying(line) is not Saying.SOMETHING:
        return None
    line = _TAG.sub("", _SUBORDINATE.split(line, maxsplit=1)[0])
    line = _LEADS_IN.sub("", line, count=1).removesuffix(" and").strip(" .,:")
    if _IS_SENTENCE.search(line) or line.endswith("ly"):
        return None
    name = named(line)
    if name is None or not 3 <= len(name) <= _LONGEST_NAME or not name[0].isalnum():
        return None
    return name
