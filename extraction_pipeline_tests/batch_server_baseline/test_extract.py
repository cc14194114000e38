"""What holds for every type and every text."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.batch_server.baseline import extract, schema_names
from extraction_pipeline.schemas.evidence import check_evidence
from extraction_pipeline.schemas.prompt import render_document
from extraction_pipeline.schemas.registry import document_type_names, find_document_type
from extraction_pipeline.schemas.validation import ValidAnswer, validate_answer
from extraction_pipeline_tests.batch_server_baseline import notes

TEXTS = [value for name, value in vars(notes).items() if name.isupper()]
MEGABYTE = 1_000_000

HOSTILE = {
    "one letter": "a",
    "spaces": " ",
    "capitals": "A ",
    "labels": "DISCHARGE MEDICATIONS: ",
    "capitals within": ".,ABCD:,",
    "headings": "# a\n",
    "numbers": "1. ",
    "cells": "a | b ",
    "bullets": "- a\n",
    "mentions": "aspirin 5 mg p.o. daily, ",
    "denials": "no known and without history of ",
    "codes": "codes 12345, ",
    "dates": "01/02/2020 ",
    "departures": "discharged to home on follow up with ",
    "verbs": "scan was done underwent a ",
    "unclosed": "((((",
    "nul": "\x00",
    "half characters": "\ud800",
}
SECTIONS = ("MEDICATIONS:\n", "Allergies: ", "DISCHARGE DIAGNOSIS: ", "PROCEDURES:\n")


def holds(name: str, text: str) -> None:
    record = extract(name, text)
    assert record is not None
    answer = validate_answer(find_document_type(name), json.dumps(record))
    assert isinstance(answer, ValidAnswer), answer
    count = check_evidence(record, text)
    assert count.found == count.total


def test_there_are_rules_for_every_shipped_type():
    assert schema_names() == document_type_names()


@pytest.mark.parametrize("name", schema_names())
def test_records_are_valid_and_their_evidence_stands_in_the_text(name):
    for text in TEXTS:
        holds(name, text)
        assert extract(name, text) == extract(name, text)


@pytest.mark.parametrize("name", schema_names())
def test_a_rendered_document_gives_what_its_text_gives(name):
    for text in TEXTS:
        assert extract(name, render_document(text)) == extract(name, text)


def test_an_unknown_schema_has_no_rules():
    assert extract("referral", notes.DICTATED) is None


PIECES = """
DISCHARGE MEDICATIONS: ALLERGIES DIAGNOSIS PLAN aspirin 5 mg p.o. daily , ; . | - 1. 2) No known
none and which causes CPT 12345 ICD-10 A10.1 Effective Date: 2031-01-02 # ### is covered Name
Status Dose Reaction ( ) Dr. discharged home on to follow up with in 2 weeks
"""
pieces = st.sampled_from([*PIECES.split(), "\n", "\n\n"])


@settings(max_examples=120, deadline=None)
@given(st.lists(pieces, max_size=60).map(" ".join) | st.text())
def test_any_text_gives_valid_records(text):
    for name in schema_names():
        holds(name, text)


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_megabyte_ends_in_time(unit):
    text = (unit * (MEGABYTE // len(unit) + 1))[:MEGABYTE]
    begun = time.process_time()
    for name in schema_names():
        extract(name, text)
    for section in SECTIONS:
        extract("discharge_summary", section + text[: MEGABYTE // 10])
    # A pattern that backtracks needs minutes for this; the rules need a second or two.
    assert time.process_time() - begun < 20


@pytest.mark.parametrize("heading", ["", "DISCHARGE MEDICATIONS:\n"])
def test_records_stay_bounded_whatever_the_text(heading):
    text = "DISCHARGE MEDICATIONS:\n" + "".join(
        f"{heading}- Brackenol{number} 5 mg daily\n" for number in range(5_000)
    )
    record = extract("discharge_summary", text)
    assert record is not None
    assert 100 < len(record["medications"]) <= 400


def test_no_text_of_the_notes_is_needed_from_disk(monkeypatch, tmp_path: Path):
    # The answer depends on the text alone: another working folder changes nothing.
    before = extract("discharge_summary", notes.DICTATED)
    monkeypatch.chdir(tmp_path)
    assert extract("discharge_summary", notes.DICTATED) == before
