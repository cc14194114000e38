"""By what the rules tell which schema a request asks for."""

import orjson
import pytest

from extraction_pipeline.batch_server.answers import Answered
from extraction_pipeline.batch_server.rules import RulesAnswerer
from extraction_pipeline.schemas.discharge_summary import DischargeSummary

TEXT = "DISCHARGE SUMMARY\n\nDISCHARGE DIAGNOSES:\n1. Fictional condition.\n"


@pytest.mark.parametrize("name", ["discharge_summary", "DischargeSummary", "output_schema"])
def test_a_schema_is_known_whatever_a_client_names_it(name):
    body = {
        "model": "rules-baseline",
        "messages": [{"role": "user", "content": TEXT}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": DischargeSummary.model_json_schema()},
        },
    }
    answer = RulesAnswerer().answer(body)
    assert isinstance(answer, Answered)
    assert answer.status_code == 200
    record = orjson.loads(answer.body["choices"][0]["message"]["content"])
    assert [each["name"] for each in record["diagnoses"]] == ["Fictional condition"]
