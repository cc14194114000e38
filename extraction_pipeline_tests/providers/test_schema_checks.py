"""Schemas that a provider cannot take are refused by the name of the field, before any call."""

from typing import Any

import pytest

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers import openai_translation
from extraction_pipeline.providers.endpoint import (
    AnthropicOutput,
    GeminiSchemaField,
    ProviderEndpoint,
)
from extraction_pipeline.providers.gemini_schema import gemini_schema
from extraction_pipeline.providers.registry import (
    BUILDERS,
    ProviderName,
    build_provider,
    check_request,
)
from extraction_pipeline.schemas.registry import document_type_names, find_document_type
from extraction_pipeline_tests.providers.sample_request import SCHEMA, object_of, sample_request

HOST = "https://host"
KEYLESS = ProviderEndpoint(HOST)
TEXT = {"type": "string"}
MAYBE = {"anyOf": [TEXT, {"type": "null"}]}


def check(name: ProviderName, schema: dict[str, Any], **options: Any) -> None:
    build_provider(name, ProviderEndpoint(HOST, "k", **options)).check_schema("note", schema)


def refused(name: ProviderName, schema: dict[str, Any], field: str, **options: Any) -> str:
    with pytest.raises(ConfigurationError, match=rf"The schema note .*: {field} ") as caught:
        check(name, schema, **options)
    assert caught.value.remedy
    return str(caught.value)


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize("kind", document_type_names())
def test_the_shipped_types_are_taken_by_every_provider(name, kind):
    found = find_document_type(kind)
    check(name, found.json_schema)
    request = sample_request(schema_name=found.name, json_schema=found.json_schema)
    check_request(name, KEYLESS, request)


@pytest.mark.parametrize("name", BUILDERS)
def test_a_request_is_checked_without_a_key(name):
    taken = "max_output_tokens" if name is ProviderName.GEMINI else "model"
    with pytest.raises(ConfigurationError, match=taken):
        check_request(name, KEYLESS, sample_request(parameters={taken: 1}))
    with pytest.raises(ConfigurationError, match="open"):
        check_request(name, KEYLESS, sample_request(json_schema={"type": "object"}))


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(
    ("schema", "field"),
    [
        (object_of(a=object_of(b=TEXT) | {"additionalProperties": True}), "a"),
        (
            object_of(
                a={"type": "array", "items": object_of(b=TEXT, c=TEXT) | {"required": ["b"]}}
            ),
            r"a\.c",
        ),
        (object_of(a={"type": "object"}), "a"),
        (object_of(a=TEXT) | {"additionalProperties": True}, "its root"),
        (
            object_of(a={"$ref": "#/$defs/A"})
            | {"$defs": {"A": object_of(b={"$ref": "#/$defs/A"})}},
            r"a\.b",
        ),
        (object_of(a={"$ref": "#/$defs/Missing"}), "a"),
    ],
)
def test_a_schema_that_is_not_strict_is_refused_everywhere(name, schema, field):
    refused(name, schema, field)


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = object_of(last=TEXT)
    for level in range(levels, 1, -1):
        schema = object_of(**{f"level{level}": schema})
    return schema


def test_openai_takes_ten_levels():
    check(ProviderName.OPENAI, deep(10))
    text = refused(ProviderName.OPENAI, deep(11), r"level2\..*level11")
    assert "10 levels" in text


def test_openai_takes_5000_properties_and_1000_values():
    many = {f"p{number}": TEXT for number in range(5_000)}
    check(ProviderName.OPENAI, object_of(**many))
    refused(ProviderName.OPENAI, object_of(**many, last=object_of(one=TEXT)), "its root")
    values = {"type": "string", "enum": [f"v{number}" for number in range(1_000)]}
    check(ProviderName.OPENAI, object_of(a=values))
    refused(ProviderName.OPENAI, object_of(a=values, b={"type": "string", "enum": ["x"]}), "b")
    long = {"type": "string", "enum": ["x" * openai_translation.MOST_CHARACTERS]}
    refused(ProviderName.OPENAI, object_of(a=long), "a")


def test_openai_needs_a_plain_schema_name():
    provider = build_provider(ProviderName.OPENAI, ProviderEndpoint(HOST, "k"))
    with pytest.raises(ConfigurationError, match="A-Z"):
        provider.check_schema("some notes", SCHEMA)


def unions(count: int) -> dict[str, Any]:
    return object_of(**{f"field{number}": MAYBE for number in range(count)})


def test_anthropic_takes_sixteen_unions_or_any_number_as_a_tool():
    check(ProviderName.ANTHROPIC, unions(16))
    text = refused(ProviderName.ANTHROPIC, unions(17), "field16")
    assert "EXTRACTION_ANTHROPIC_OUTPUT=tool" in text
    check(ProviderName.ANTHROPIC, unions(17), anthropic_output=AnthropicOutput.TOOL)


def test_anthropic_counts_the_unions_of_a_definition_once():
    used = {f"use{number}": {"$ref": "#/$defs/A"} for number in range(20)}
    check(ProviderName.ANTHROPIC, object_of(**used) | {"$defs": {"A": unions(16)}})
    refused(
        ProviderName.ANTHROPIC,
        object_of(**used, own={"type": ["string", "null"]}) | {"$defs": {"A": unions(16)}},
        r"A\.field15",
    )


@pytest.mark.parametrize("place", GeminiSchemaField)
def test_gemini_takes_five_levels_in_either_form(place):
    check(ProviderName.GEMINI, deep(5), gemini_schema_field=place)
    refused(ProviderName.GEMINI, deep(6), r"level2\..*level6", gemini_schema_field=place)


@pytest.mark.parametrize(
    ("property_schema", "field"),
    [
        ({"type": "integer", "enum": [1, 2]}, "a"),
        ({"type": "string", "enum": ["x", ""]}, "a"),
        ({"type": "null"}, "a"),
        ({"anyOf": [{"type": "null"}]}, "a"),
        ({"type": "string", "minLength": 1}, "a"),
        ({"type": "array", "items": object_of(b={"type": "string", "pattern": "x"})}, r"a\.b"),
    ],
)
def test_what_geminis_own_form_lacks_is_refused_and_the_other_form_is_offered(
    property_schema, field
):
    text = refused(ProviderName.GEMINI, object_of(a=property_schema), field)
    assert "EXTRACTION_GEMINI_SCHEMA_FIELD=response_json_schema" in text
    as_is = GeminiSchemaField.RESPONSE_JSON_SCHEMA
    check(ProviderName.GEMINI, object_of(a=property_schema), gemini_schema_field=as_is)


def written_out(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema without references."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    out = {name: value for name, value in schema.items() if name != "$defs"}
    if "properties" in out:
        out["properties"] = {
            name: written_out(inner, definitions) for name, inner in out["properties"].items()
        }
    if "items" in out:
        out["items"] = written_out(out["items"], definitions)
    if "anyOf" in out:
        out["anyOf"] = [written_out(option, definitions) for option in out["anyOf"]]
    return out


def turned_back(schema: dict[str, Any]) -> dict[str, Any]:
    """From Gemini's form to JSON Schema."""
    said = {"description": schema["description"]} if "description" in schema else {}
    if "any_of" in schema:
        options = [turned_back(option) for option in schema["any_of"]]
    else:
        plain: dict[str, Any] = {"type": schema["type"].lower()}
        if "properties" in schema:
            assert schema["property_ordering"] == list(schema["properties"])
            plain |= {
                "properties": {n: turned_back(s) for n, s in schema["properties"].items()},
                "required": schema["required"],
                "additionalProperties": False,
            }
        if "items" in schema:
            plain["items"] = turned_back(schema["items"])
        if "enum" in schema:
            assert schema["format"] == "enum"
            plain["enum"] = schema["enum"]
        if not schema.get("nullable"):
            return plain | said
        options = [plain]
    if schema.get("nullable"):
        options.append({"type": "null"})
    return {"anyOf": options} | said


@pytest.mark.parametrize(
    "schema",
    [SCHEMA, *(find_document_type(kind).json_schema for kind in document_type_names())],
    ids=["sample", *document_type_names()],
)
def test_geminis_form_says_the_same_as_the_schema(schema):
    plain = dict(schema)
    assert turned_back(gemini_schema("note", plain)) == written_out(plain, plain.get("$defs", {}))


def test_a_list_of_types_is_a_choice():
    listed = object_of(a={"type": ["string", "null"], "enum": ["x", "y"], "description": "d"})
    assert gemini_schema("note", listed)["properties"]["a"] == {
        "type": "STRING",
        "format": "enum",
        "enum": ["x", "y"],
        "nullable": True,
        "description": "d",
    }
    both = gemini_schema("note", object_of(a={"type": ["string", "integer"]}))
    assert both["properties"]["a"] == {"any_of": [{"type": "STRING"}, {"type": "INTEGER"}]}


def test_infrai_keeps_the_name_of_the_echo_for_itself():
    refused(ProviderName.INFRAI, object_of(extraction_request_id=TEXT), "extraction_request_id")
