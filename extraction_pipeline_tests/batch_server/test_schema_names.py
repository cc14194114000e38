"""The names of schemas that came without one."""

from typing import Any

import pytest

from extraction_pipeline.batch_server.baseline import schema_names
from extraction_pipeline.batch_server.gemini.openapi_schema import json_schema
from extraction_pipeline.batch_server.schema_names import NAMELESS, schema_name
from extraction_pipeline.schemas.registry import find_document_type

SCHEMAS = {name: find_document_type(name).json_schema for name in schema_names()}


def openapi(node: Any) -> Any:
    """As Gemini's other field has it: large type names, and `nullable`."""
    if isinstance(node, list):
        return [openapi(each) for each in node]
    if not isinstance(node, dict):
        return node
    translated = {
        name: value.upper() if name == "type" and isinstance(value, str) else openapi(value)
        for name, value in node.items()
    }
    options = translated.get("anyOf")
    if isinstance(options, list) and {"type": "NULL"} in options:
        rest = [option for option in options if option != {"type": "NULL"}]
        return {**translated, "anyOf": rest, "nullable": True}
    return translated


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_of_ours_is_known_by_what_it_asks_for(name):
    schema = SCHEMAS[name]
    assert schema_name(schema) == name
    assert schema_name({**schema, "title": "Something else"}) == name
    marked = {**schema["properties"], "document_hash": {"type": "string"}}
    assert schema_name({**schema, "properties": marked}) == name
    assert schema_name(json_schema(openapi(schema))) == name


@pytest.mark.parametrize("name", SCHEMAS)
def test_gemini_s_form_of_a_schema_of_ours_is_the_same_schema(name):
    assert json_schema(openapi(SCHEMAS[name])) == SCHEMAS[name]


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({}, NAMELESS),
        ({"title": 7}, NAMELESS),
        ({"title": "  "}, NAMELESS),
        ({"title": "DischargeSummary"}, "discharge_summary"),
        ({"title": "Payer note"}, "payer_note"),
        ({"title": "MyOwn-Type 2"}, "my_own_type_2"),
        ({"title": "x" * 100}, "x" * 64),
        ({"properties": {"payer": {}}}, NAMELESS),
    ],
)
def test_a_title_names_a_schema(schema, name):
    assert schema_name(schema) == name
