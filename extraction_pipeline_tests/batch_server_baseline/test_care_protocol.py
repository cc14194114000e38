from extraction_pipeline.batch_server.baseline import extract
from extraction_pipeline_tests.batch_server_baseline import notes


def read(text: str):
    record = extract("care_protocol", text)
    assert record is not None
    return record


def test_a_protocol():
    record = read(notes.PROTOCOL)
    assert record["title"] == "Seizures in adults"
    assert record["issuing_body"] == "Brackwater Ambulance Trust"
    assert record["version"] == "4.2"
    assert record["effective_date"] == {"as_written": "1 January 2031", "iso": "2031-01-01"}
    assert record["population"] == "Adults with a seizure of more than five minutes"
    assert record["contraindications"] == []
    assert record["indications"] is None
    assert record["published_date"] is None


def test_steps_under_a_heading_within_a_section_belong_to_it():
    assert [step["text"] for step in read(notes.PROTOCOL)["steps"]] == [
        "Protect the airway.",
        "Give midazolam 10 mg IM.",
        "If the seizure goes on, give lorazepam 4 mg IV, once.",
        "Reassess every five minutes.",
    ]


def test_medications_and_monitoring_come_from_the_steps():
    record = read(notes.PROTOCOL)
    assert [(item["name"], item["dose"], item["route"]) for item in record["medications"]] == [
        ("midazolam", "10 mg", "IM"),
        ("lorazepam", "4 mg", "IV"),
    ]
    assert [item["text"] for item in record["monitoring"]] == ["Reassess every five minutes."]


def test_a_revision_without_a_day_keeps_its_words():
    record = read("## Date Released\n\n2029 Jan 28 (revised 2031)\n")
    assert record["published_date"] == {"as_written": "2029 Jan 28", "iso": "2029-01-28"}
    assert record["reviewed_date"] == {"as_written": "2031", "iso": None}
