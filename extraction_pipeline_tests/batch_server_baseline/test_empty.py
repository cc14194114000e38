import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.batch_server.baseline import empty_instance
from extraction_pipeline.schemas.registry import document_type_names, find_document_type
from extraction_pipeline.schemas.validation import ValidAnswer, validate_answer


@pytest.mark.parametrize("name", document_type_names())
def test_shipped_schemas_get_an_empty_record_that_validates(name):
    document_type = find_document_type(name)
    empty = empty_instance(document_type.json_schema)
    assert isinstance(empty, dict)
    record = document_type.model.model_validate(empty)
    assert isinstance(validate_answer(document_type, record.model_dump_json()), ValidAnswer)
    assert all(value is None for key, value in empty.items() if key != "decision")


def test_each_kind_of_value_states_nothing():
    schema = {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "share": {"type": "number"},
            "flag": {"type": "boolean"},
            "list": {"type": "array", "items": {"type": "string"}},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
            "typed": {"type": ["string", "null"]},
            "level": {"type": "string", "enum": ["high", "not_stated"]},
            "side": {"type": "string", "enum": ["left", "right"]},
            "inner": {"$ref": "#/$defs/inner"},
        },
        "$defs": {"inner": {"type": "object", "properties": {"a": {"type": "null"}}}},
    }
    assert empty_instance(schema) == {
        "text": "",
        "count": 0,
        "share": 0,
        "flag": False,
        "list": [],
        "maybe": None,
        "either": 0,
        "typed": None,
        "level": "not_stated",
        "side": "left",
        "inner": {"a": None},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "cat"},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}},
        {"type": "object", "properties": {"a": []}},
    ],
)
def test_other_schemas_are_refused(schema):
    with pytest.raises(ValueError, match="strict"):
        empty_instance(schema)


scalars = st.sampled_from(["string", "integer", "number", "boolean", "null"]).map(
    lambda kind: {"type": kind}
)
schemas = st.recursive(
    scalars,
    lambda inner: (
        inner.map(lambda item: {"type": "array", "items": item})
        | inner.map(lambda item: {"anyOf": [item, {"type": "null"}]})
        | st.dictionaries(st.text(max_size=5), inner, min_size=1, max_size=4).map(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            }
        )
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(schemas)
def test_any_strict_schema_accepts_its_empty_instance(schema):
    jsonschema.validate(empty_instance(schema), schema)
