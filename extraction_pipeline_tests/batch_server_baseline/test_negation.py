import pytest

from extraction_pipeline.batch_server.baseline.negation import Saying, saying


@pytest.mark.parametrize(
    "text",
    [
        "None",
        "none.",
        "NKDA",
        "N.K.D.A.",
        "No known drug allergies",
        "She has no allergies.",
        "The patient denies any drug allergies",
        "No Active Medications.",
        "No known problems or medical conditions.",
        "Nil",
    ],
)
def test_it_states_that_there_is_none(text):
    assert saying(text) is Saying.NONE


@pytest.mark.parametrize(
    "text",
    [
        "",
        " - ",
        "____",
        "N/A",
        "Unknown.",
        "No information",
        "Not available",
        "Discharge medication information is not available",
        "No data in the system",
        "No Hospital Course Recorded",
        "Deferred",
    ],
)
def test_it_says_nothing(text):
    assert saying(text) is Saying.NOTHING


@pytest.mark.parametrize(
    "text",
    [
        "Aspirin 81 mg, no known side effects",
        "Metoprolol (dose not recorded)",
        "Norvasc",
        "Nonsteroidals; no known reaction",
        "Pneumonia, organism unknown",
        "x" * 500 + " none",
    ],
)
def test_it_states_something(text):
    assert saying(text) is Saying.SOMETHING
