"""The words of headings and coding systems label values; they are never values themselves."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.batch_server.baseline.items import table
from extraction_pipeline.batch_server.baseline.names import named
from extraction_pipeline_tests.batch_server_baseline.test_discharge_summary import names, read

CODED = """Problems

Group Description | Code System | Code | Code Description | Date and Time | Status
Bramble rash | SNOMED-CT | 100200300 | Dermatitis caused by bramble | 03-31-2031 | Active
 | ICD-10-CM | L23.7 | Allergic contact dermatitis due to plants |  |
 | ICD-9-CM | 692.6 | Contact dermatitis due to plants |  |
Thistle fever | SNOMED-CT | 100200301 | Fever after thistle | 03-31-2031 | Active
 | ICD-10-CM | R50.9 | Fever, unspecified |  |

Medications

Group Description | Code System | Code | Code Description | Date and Time | Status
Antipyretics | RxNorm | 100 | Paracetamol 500 MG Oral Tablet | 03-31-2031 | Active

Procedures

Group Description | Code System | Code | Code Description | Date and Time | Status
Skin inspection | CPT | 99999 | Inspection of the skin | 03-31-2031 | Performed
 | HCPCS | S9999 | Inspection, skin |  |

Allergies

Group Description | Code System | Code | Code Description | Severity | Date and Time | Status
Allergy to Nettles | UNII | 1A2B3C | Nettle | Severe | 03-31-2031 | Active
 | ICD-9-CM | V15.09 | Other allergy |  |  |
Codeine | NDF-RT | N000001 | Codeine | Mild | 03-31-2031 | Active

Vital Signs

Observation | LOINC Code | Date | Result Value | Result Unit
Height | 8302-2 | 03-31-2031 | 177 | cm

Health Concerns

No Known Health Concern.

Goals Section

None recorded.
"""
SYSTEMS = ("ICD-10-CM", "ICD-9-CM", "HCPCS", "SNOMED CT", "SNOMED-CT", "CPT", "CPT-4", "RxNorm")


def test_a_table_of_codes_gives_what_the_codes_stand_for():
    record = read(CODED)
    assert names(record["diagnoses"]) == ["Bramble rash", "Thistle fever"]
    assert [(one["name"], one["dose"]) for one in record["medications"]] == [
        ("Paracetamol", "500 MG")
    ]
    assert names(record["procedures"]) == ["Skin inspection"]
    assert names(record["allergies"], "substance") == ["Nettles", "Codeine"]


@pytest.mark.parametrize("system", [*SYSTEMS, "LOINC", "NDC", "UNII", "NDF-RT", "CVX", "SNOMED"])
def test_coding_systems_and_codes_are_no_names(system):
    assert named(system) is None
    assert named(f"{system} code") is None


@pytest.mark.parametrize(
    "words",
    ["Date", "Start Date", "Health Concerns", "I25.10", "1/16/2031", "414.01", "a | b", "--"],
)
def test_labels_codes_and_dates_are_no_names(words):
    assert named(words) is None


@pytest.mark.parametrize("words", ["T2DM", "MI", "COVID-19", "Type 2 diabetes", "Reading disorder"])
def test_short_names_stay_names(words):
    assert named(words) == words


def test_a_row_keeps_its_blank_cells_in_either_way_of_drawing_a_table():
    drawn = table(
        "| Name | Code | Status |\n|---|---|---|\n| | I10 | Active |\n|a|b|c|", frozenset()
    )
    assert [row.cells.get("code") for row in drawn] == ["---", "I10", "b"]
    plain = table("Name | Code | Status\n | I10 | Active\na | b |", frozenset())
    assert [tuple(row.cells.values()) for row in plain] == [("", "I10", "Active"), ("a", "b", "")]


CELLS = st.sampled_from(
    ["", *SYSTEMS, "Name", "Code", "Code System", "Status", "Date", "Active", "I10", "401.9", "x1"]
)


@settings(max_examples=150)
@given(
    st.sampled_from(["Problems", "Medications", "Procedures", "Allergies", "Diagnoses"]),
    st.lists(st.lists(CELLS, min_size=1, max_size=5), min_size=1, max_size=6),
    st.booleans(),
)
def test_no_coding_system_is_ever_a_value(title, rows, edged):
    lines = [" | ".join(row) for row in rows]
    body = "\n".join(f"| {line} |" if edged else line for line in lines)
    record = read(f"{title}\n\n{body}\n")
    for field in ("diagnoses", "medications", "procedures"):
        assert not set(SYSTEMS) & set(names(record[field] or []))
    assert not set(SYSTEMS) & set(names(record["allergies"] or [], "substance"))


@pytest.mark.parametrize("blank", ["", " ", "___", " \n\n\n", "-"])
@pytest.mark.parametrize("place", ["Allergies:", "Medications:", "Procedures:", "Diagnoses:"])
def test_a_list_that_is_left_blank_states_nothing_and_never_none(place, blank):
    """A list has no blank of its own, and an empty one would deny what was only not entered."""
    record = read(f"Patient: Q\n{place}{blank}\nDisposition: home\n")
    assert record[place.rstrip(":").lower()] is None


@pytest.mark.parametrize(
    ("section", "substances", "reactions"),
    [
        ("- Nettle: hives in childhood. *Tolerated dock.*", ["Nettle"], ["hives in childhood"]),
        (
            "Contrast \u2014 mild rash 2018; premedicated, none this time.",
            ["Contrast"],
            ["mild rash 2018"],
        ),
        (
            "Nettle \u2013 rash. \u201cAll plants,\u201d says his wife; he was never tested.",
            ["Nettle"],
            ["rash"],
        ),
        (
            "Vancomycin (infusion reaction, flushing)",
            ["Vancomycin"],
            ["infusion reaction, flushing"],
        ),
        ("Drug allergies: nettle, dock", ["nettle", "dock"], []),
        ("- Nettle: rash\n- No known allergy to dock", ["Nettle"], ["rash"]),
    ],
)
def test_allergies_as_they_are_written(section, substances, reactions):
    found = read(f"Allergies:\n{section}\n")["allergies"]
    assert names(found, "substance") == substances
    assert [reaction for one in found for reaction in one["reactions"]] == reactions


def test_an_allergy_that_cannot_be_read_is_not_denied():
    text = (
        "Allergies:\n"
        "- He was once told by somebody at another hospital that some antibiotic had harmed him\n"
        "- No known allergy to dock\n"
    )
    assert read(text)["allergies"] is None


def test_a_markdown_table_with_names_in_the_first_column():
    text = (
        "## Discharge medications\n\n"
        "| Medicine | Dose | Route | How often | Change |\n|---|---|---|---|---|\n"
        "| Brackenol | 40 mg | oral | twice daily | **new** |\n"
    )
    (found,) = read(text)["medications"]
    assert [found[key] for key in ("name", "dose", "route", "frequency", "status")] == [
        *("Brackenol", "40 mg", "oral", "twice daily", "new")
    ]


def test_emphasis_is_no_part_of_a_name_and_a_rank_none_of_a_diagnosis():
    text = (
        "## Diagnoses\n\n**Principal:** Bramble rash, left arm (itching, red)\n\n**Secondary:**\n\n"
        "- Thistle fever\n\n## Medications\n\n1. **Brackenol** 10 mg daily\n"
    )
    record = read(text)
    assert names(record["diagnoses"]) == ["Bramble rash, left arm (itching, red)", "Thistle fever"]
    assert names(record["medications"]) == ["Brackenol"]


def test_what_follows_a_list_under_a_heading_without_a_colon_is_not_part_of_it():
    text = (
        "Procedures\n- Bronchoscopy\n\nPresentation\nShe fell.\n\nMedications to take home:\n"
        "  Brackenol 10 mg by mouth daily\n\nGoes home with: parents\nReview: clinic in 2 weeks\n"
    )
    record = read(text)
    assert names(record["procedures"]) == ["Bronchoscopy"]
    assert names(record["medications"]) == ["Brackenol"]
