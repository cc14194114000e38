"""Procedure, product and diagnosis codes in payers' documents, with their system and meaning."""

import re
from collections.abc import Iterator

from extraction_pipeline.batch_server.baseline.items import one_line
from extraction_pipeline.schemas.payer_note import BillingCode, CodeSystem

MOST_CODES = 400
_LONGEST_TEXT = 200_000
_LIST = r"(?:[ \t]{0,2}(?:,|;|/|and|or|&|-|\u2013|through|to)[ \t\n]{0,3}"
_ANY_CODE = r"(?=[A-Z]{0,3}[0-9])[A-Z0-9][A-Z0-9.\-]{2,12}"
_NAMED_CODES = re.compile(
    r"\b(?P<system>CPT(?:®)?(?:/HCPCS)?|HCPCS|ICD-?10-?CM|ICD-?10-?PCS|ICD-?10|ICD-?9-?CM|ICD-?9"
    r"|NDC|CDT|MS-DRG|DRG|revenue|J-code)"
    r"(?:[ \t]{1,2}(?:diagnosis|procedure|Level II|codes?|code\(s\)|number|numbers|no\.)){0,2}"
    r"[ \t]{0,2}[:#(|]?[ \t\n]{0,3}"
    rf"(?P<codes>{_ANY_CODE}{_LIST}{_ANY_CODE}){{0,40}})",
    re.IGNORECASE,
)
_UNNAMED_CODES = re.compile(
    rf"\bcodes?[ \t:]{{1,3}}(?P<codes>(?:[0-9]{{5}}|[A-V][0-9]{{4}}){_LIST}"
    rf"(?:[0-9]{{5}}|[A-V][0-9]{{4}})){{0,40}})"
)
_LISTED_CODE = re.compile(
    r"^[ \t]{0,8}(?:[-*•][ \t]{0,3})?(?P<code>[A-TV-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?|[0-9]{5}"
    r"|[A-V][0-9]{4})(?:\t|[ \t]{0,2}[-\u2013:|][ \t]{1,3}|[ ]{2,8})"
    r"(?P<meaning>[A-Za-z][^\n|]{3,200})$",
    re.MULTILINE,
)
_MEANING = re.compile(
    r"[ \t]{0,2}(?:\((?P<in>[A-Za-z][^()\n]{3,120})\)"
    r"|[-\u2013:][ \t](?P<after>[A-Z][^\n.;]{3,120}))"
)
_ONE_CODE = re.compile(r"[A-Z0-9](?:[A-Z0-9.\-]{1,11}[A-Z0-9])")
_SHAPES = {
    CodeSystem.CPT: re.compile(r"[0-9]{4}[0-9FTU]"),
    CodeSystem.HCPCS: re.compile(r"[A-V][0-9]{4}"),
    CodeSystem.ICD_10_CM: re.compile(r"[A-TV-Z][0-9][0-9A-Z](?:\.[0-9A-Z]{1,4})?"),
    CodeSystem.ICD_10_PCS: re.compile(r"[0-9A-Z]{7}"),
    CodeSystem.ICD_9_CM: re.compile(r"(?:[0-9]{3}|V[0-9]{2})(?:\.[0-9]{1,2})?"),
    CodeSystem.NDC: re.compile(r"[0-9]{4,5}-[0-9]{3,4}-[0-9]{1,2}|[0-9]{11}"),
    CodeSystem.CDT: re.compile(r"D[0-9]{4}"),
    CodeSystem.MS_DRG: re.compile(r"[0-9]{3}"),
    CodeSystem.REVENUE_CODE: re.compile(r"0?[0-9]{3}"),
}
_SYSTEMS_BY_NAME: tuple[tuple[str, tuple[CodeSystem, ...]], ...] = (
    ("CPT", (CodeSystem.CPT, CodeSystem.HCPCS)),
    ("HCPCS", (CodeSystem.CPT, CodeSystem.HCPCS)),
    ("J-CODE", (CodeSystem.HCPCS,)),
    ("PCS", (CodeSystem.ICD_10_PCS,)),
    ("10", (CodeSystem.ICD_10_CM,)),
    ("9", (CodeSystem.ICD_9_CM,)),
    ("DRG", (CodeSystem.MS_DRG,)),
    ("REVENUE", (CodeSystem.REVENUE_CODE,)),
    ("NDC", (CodeSystem.NDC,)),
    ("CDT", (CodeSystem.CDT,)),
)
"""By what stands in the name that a document uses. HCPCS level I is CPT, so both are possible."""


def billing_codes(text: str) -> list[BillingCode]:
    """The codes that `text` names, in order, each once. A meaning is kept where it stands by."""
    text = text[:_LONGEST_TEXT]
    found: dict[tuple[CodeSystem, str], BillingCode] = {}
    for code in (*_named(text), *_listed(text)):
        key = (code.system, code.code)
        if key not in found or (found[key].description is None and code.description):
            found[key] = code
        if len(found) >= MOST_CODES:
            break
    return list(found.values())


def _named(text: str) -> Iterator[BillingCode]:
    for match in _NAMED_CODES.finditer(text):
        codes = _ONE_CODE.findall(match["codes"].upper())
        meaning = _MEANING.match(text, match.end()) if len(codes) == 1 else None
        for code in codes:
            system = _system(match["system"].upper().replace("®", ""), code)
            if system is not None:
                yield BillingCode(
                    system=system,
                    code=code,
                    description=one_line(meaning["in"] or meaning["after"]) if meaning else None,
                    evidence=[match[0].strip()],
                )
    for match in _UNNAMED_CODES.finditer(text):
        for code in _ONE_CODE.findall(match["codes"]):
            yield _coded(text, code, None, match[0])


def _listed(text: str) -> Iterator[BillingCode]:
    for match in _LISTED_CODE.finditer(text):
        yield _coded(text, match["code"], one_line(match["meaning"]), match[0].strip())


def _coded(text: str, code: str, meaning: str | None, words: str) -> BillingCode:
    """A code without its system's name beside it: by its form, if the document names the system."""
    system = CodeSystem.NOT_STATED
    for candidate, name in (
        (CodeSystem.HCPCS, "HCPCS"),
        (CodeSystem.ICD_10_CM, "ICD-10"),
        (CodeSystem.CPT, "CPT"),
    ):
        if _SHAPES[candidate].fullmatch(code) and name in text:
            system = candidate
            break
    return BillingCode(system=system, code=code, description=meaning, evidence=[words])


def _system(named: str, code: str) -> CodeSystem | None:
    """The system of a code that stands after a system's name; `None` if it is no code of it."""
    options = next(systems for prefix, systems in _SYSTEMS_BY_NAME if prefix in named)
    return next((system for system in options if _SHAPES[system].fullmatch(code)), None)
