import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import jsonschema
import pytest
from pydantic import BaseModel, ConfigDict, Field, RootModel

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.schemas.json_schema import strict_json_schema
from extraction_pipeline.schemas.registry import document_type_names, find_document_type
from extraction_pipeline_tests.schemas.records import ANSWERS

GOLDEN = Path(__file__).parent / "golden"
KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "description",
    "$ref",
    "$defs",
}


def nodes(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in [
        *schema.get("properties", {}).values(),
        *schema.get("$defs", {}).values(),
        *schema.get("anyOf", []),
        *([schema["items"]] if "items" in schema else []),
    ]:
        yield from nodes(inner)


@pytest.mark.parametrize("name", document_type_names())
def test_schema_is_the_one_that_was_agreed(name):
    # A changed schema is another recipe: raise `schema_version`, then write the file anew.
    schema = find_document_type(name).json_schema
    written = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    assert written == (GOLDEN / f"{name}.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", document_type_names())
def test_schema_is_strict(name):
    schema = find_document_type(name).json_schema
    for node in nodes(schema):
        assert set(node) <= KEYWORDS
        assert set(node) & {"type", "anyOf", "$ref"}
        if node.get("type") == "object":
            assert node["additionalProperties"] is False
            assert node["required"] == list(node["properties"])
        if "$ref" in node:
            assert list(node) == ["$ref"]


@pytest.mark.parametrize("name", document_type_names())
def test_schema_keeps_within_the_smallest_published_limits(name):
    # Anthropic refuses more than 16 union-typed parameters, OpenAI's first limits were 100
    # properties and 5 levels.
    schema = find_document_type(name).json_schema
    everything = list(nodes(schema))
    assert sum("anyOf" in node for node in everything) <= 16
    assert sum(len(node.get("properties", ())) for node in everything) <= 100


@pytest.mark.parametrize("name", document_type_names())
def test_dumps_of_the_model_validate(name):
    document_type = find_document_type(name)
    jsonschema.Draft202012Validator.check_schema(document_type.json_schema)
    record = document_type.model.model_validate(ANSWERS[name]())
    jsonschema.validate(record.model_dump(mode="json"), document_type.json_schema)


@pytest.mark.parametrize("name", document_type_names())
def test_schema_refuses_what_the_model_refuses(name):
    schema = find_document_type(name).json_schema
    answer = ANSWERS[name]()
    first = next(iter(answer))
    for broken in ({**answer, "more": 1}, {k: v for k, v in answer.items() if k != first}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, schema)


def test_constraints_and_defaults_are_left_out_and_all_properties_required():
    class Photo(BaseModel):
        """Not sent."""

        width: int = Field(default=1, ge=1, le=9, description="In pixels.")
        label: str | None = Field(default=None, min_length=2, pattern="^a")
        kind: Literal["x"] = "x"
        mixed: Literal["x", 2, None] = None

    assert strict_json_schema(Photo) == {
        "type": "object",
        "properties": {
            "width": {"type": "integer", "description": "In pixels."},
            "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "kind": {"type": "string", "enum": ["x"]},
            "mixed": {
                "anyOf": [
                    {"type": "string", "enum": ["x"]},
                    {"type": "integer", "enum": [2]},
                    {"type": "null"},
                ]
            },
        },
        "required": ["width", "label", "kind", "mixed"],
        "additionalProperties": False,
    }


def test_a_described_object_is_written_out_since_a_reference_must_stand_alone():
    class Inner(BaseModel):
        a: str

    class Outer(BaseModel):
        plain: Inner
        described: Inner = Field(description="This one.")

    schema = strict_json_schema(Outer)
    assert schema["properties"]["plain"] == {"$ref": "#/$defs/Inner"}
    assert schema["properties"]["described"]["description"] == "This one."
    assert schema["properties"]["described"]["properties"] == {"a": {"type": "string"}}


class Node(BaseModel):
    value: str
    children: list["Node"]


class FreeKeys(BaseModel):
    inner: dict[str, str]


class AnyValue(BaseModel):
    first: str
    inner: Any


class AnyItems(BaseModel):
    inner: list[Any]


class Pair(BaseModel):
    inner: tuple[str, int]


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    inner: str


class Empty(BaseModel):
    pass


class Unspeakable(BaseModel):
    inner: Callable[[int], int]


class Texts(RootModel[list[str]]):
    pass


class Deep(BaseModel):
    outer: FreeKeys


@pytest.mark.parametrize(
    ("model", "named"),
    [
        (Node, "children"),
        (FreeKeys, "inner"),
        (AnyValue, "inner"),
        (AnyItems, "inner"),
        (Pair, "inner"),
        (Open, "Open"),
        (Empty, "Empty"),
        (Unspeakable, "Unspeakable"),
        (Texts, "Texts"),
        (Deep, "outer.inner"),
    ],
)
def test_what_cannot_be_expressed_is_refused_by_name(model, named):
    with pytest.raises(ConfigurationError) as refused:
        strict_json_schema(model)
    assert named in refused.value.message
    assert refused.value.remedy
