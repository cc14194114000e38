import pytest

from extraction_pipeline.batch_server.baseline import extract
from extraction_pipeline_tests.batch_server_baseline import notes


def read(text: str):
    record = extract("payer_note", text)
    assert record is not None
    return record


def test_a_policy():
    record = read(notes.POLICY)
    assert record["policy_number"] == "LHP-2031-07"
    assert record["policy_title"] == "Continuous glucose monitoring"
    assert record["effective_date"] == {"as_written": "January 15, 2031", "iso": "2031-01-15"}
    assert [(item["system"], item["code"]) for item in record["codes"]] == [
        ("CPT", "95249"),
        ("CPT", "95250"),
        ("HCPCS", "A4239"),
    ]
    assert [item["text"] for item in record["criteria"]][1:] == [
        "The member has diabetes that is treated with insulin.",
        "The member was seen within the last six months.",
    ]
    assert [item["text"] for item in record["limitations"]] == [
        "No more than one sensor every 10 days."
    ]
    assert [item["text"] for item in record["documents_required"]] == [
        "Office notes of the last visit."
    ]
    assert record["decision"] == "covered_with_criteria"
    assert record["decision_reason"] is None


def test_a_denial():
    record = read(notes.DENIAL)
    assert record["payer"] == "Larkspur Health Plan"
    assert record["policy_number"] == "2031-00417"
    assert record["service"] == "CPT 72148 (MRI of the lumbar spine)"
    assert record["decision"] == "denied"
    assert record["decision_reason"] == "Not medically necessary."
    assert [(item["system"], item["code"], item["description"]) for item in record["codes"]] == [
        ("CPT", "72148", "MRI of the lumbar spine"),
        ("ICD-10-CM", "M54.50", "Low back pain, unspecified"),
    ]
    assert "555" not in str(record)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("appeal decision: Upheld", "denial_upheld"),
        ("Decision: the denial is overturned", "denial_overturned"),
        ("Determination: Approved", "approved"),
        ("Determination: approved in part, partially denied", "partly_approved"),
        ("Authorization status: x\nDecision: pended for records", "pending"),
        (
            "COVERAGE CRITERIA\n\nHome oxygen is covered if the saturation is low.",
            "covered_with_criteria",
        ),
        ("COVERAGE CRITERIA\n\nHome oxygen is covered.", "covered"),
        ("EXCLUSIONS\n\nHome saunas are not covered.", "not_covered"),
        ("Thank you for your letter.", "not_stated"),
    ],
)
def test_decisions(text, decision):
    assert read(text)["decision"] == decision


def test_a_limit_among_the_criteria_is_a_limitation():
    record = read("COVERAGE CRITERIA\n\n- Age over 18.\n- No more than two visits a year.\n")
    assert [item["text"] for item in record["criteria"]] == ["Age over 18."]
    assert [item["text"] for item in record["limitations"]] == ["No more than two visits a year."]


def test_numbers_that_are_no_codes_stay_out():
    record = read("Suite 12345, Boston 02139. Call 55512. The plan paid 99213 dollars.")
    assert record["codes"] is None


POLICY = """# Medical Policy: Hats

| | |
|---|---|
| **Payer** | Bramble Health Plan |
| **Policy number** | BHP-HAT-001 |
| **Policy title** | Sun Hats |
| **Effective date** | January 1, 2031 |
| **Last review** | October 22, 2030 |

## Criteria to continue after 90 days

- Worn on most days

## Not covered

- A second hat

## Codes

System | Code | Note
CPT | 99998 | Hat
HCPCS | E9999 | Brim

## Documents to send

- A photograph
"""


def test_a_policy_that_tells_itself_in_a_table_of_two_columns():
    record = extract("payer_note", POLICY)
    assert record is not None
    assert record["payer"] == "Bramble Health Plan"
    assert record["policy_number"] == "BHP-HAT-001"
    assert record["policy_title"] == "Sun Hats"
    assert record["effective_date"] == {"as_written": "January 1, 2031", "iso": "2031-01-01"}
    assert [(one["system"], one["code"]) for one in record["codes"]] == [
        ("CPT", "99998"),
        ("HCPCS", "E9999"),
    ]
    for field, text in (
        ("criteria", "Worn on most days"),
        ("limitations", "A second hat"),
        ("documents_required", "A photograph"),
    ):
        assert [one["text"] for one in record[field]] == [text]


def test_the_insurer_of_a_letter_and_a_request_that_is_pended():
    record = extract("payer_note", "BRAMBLE MUTUAL BENEFIT\nPO Box 1\n\nStatus\n\nPENDED.\n")
    assert record is not None
    assert (record["payer"], record["decision"]) == ("BRAMBLE MUTUAL BENEFIT", "pending")


def test_a_table_of_two_columns_is_no_list_of_labels():
    text = "Discharge medications\n\nMedication | Dose\nBrackenol | 10 mg\nAspirin | 81 mg\n"
    record = extract("discharge_summary", text)
    assert record is not None
    found = [(one["name"], one["dose"]) for one in record["medications"]]
    assert found == [("Brackenol", "10 mg"), ("Aspirin", "81 mg")]
