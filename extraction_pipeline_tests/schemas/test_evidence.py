import time

from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.schemas.discharge_summary import Diagnosis, DischargeSummary
from extraction_pipeline.schemas.evidence import EvidenceCount, check_evidence
from extraction_pipeline_tests.schemas.records import discharge_answer

TEXT = """Admitted 3 May 2031 with decompensated
heart   failure. Discharged 05/09/31.
Furosemide 40 mg
p.o. b.i.d. Allergies: Penicillin: rash"""


def test_quotes_and_dates_are_counted_whatever_the_white_space():
    assert check_evidence(discharge_answer(), TEXT) == EvidenceCount(found=5, total=5)


def test_other_letters_or_case_are_not_found():
    record = discharge_answer()
    record["diagnoses"][0]["evidence"] = ["Decompensated heart failure", "heart failing", "heart"]
    assert check_evidence(record, TEXT) == EvidenceCount(found=5, total=7)


def test_text_outside_evidence_is_not_a_quote():
    assert check_evidence({"name": "x", "evidence": []}, "") == EvidenceCount(0, 0)
    assert check_evidence({"evidence": None, "as_written": "x"}, "y") == EvidenceCount(0, 1)
    assert check_evidence({"a": [{"b": {"evidence": "x"}}]}, "xyz") == EvidenceCount(1, 1)


def test_blank_and_repeated_quotes_are_dropped_by_the_model():
    diagnosis = Diagnosis(name="Gout", evidence=["gout", " ", "gout", ""])
    assert diagnosis.evidence == ["gout"]


def test_the_dump_of_a_model_can_be_checked():
    record = DischargeSummary.model_validate(discharge_answer())
    assert check_evidence(record.model_dump(mode="json"), TEXT).found == 5


@given(st.text(), st.text(min_size=1), st.text())
def test_a_piece_of_the_text_is_always_found(before, quote, after):
    count = check_evidence({"evidence": [quote]}, before + quote + after)
    assert count.found == count.total == (1 if quote.split() else 0)


def test_a_long_text_with_many_quotes_takes_no_time_to_speak_of():
    text = "word " * 200_000
    record = {"evidence": ["word word " * 5 + f"{number}" for number in range(300)]}
    begun = time.process_time()
    assert check_evidence(record, text) == EvidenceCount(0, 300)
    assert time.process_time() - begun < 10
