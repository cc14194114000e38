"""The exact lines that leave the building, one file for each way of speaking.

A changed line is a changed recipe: what was asked before can no longer be told from what is asked
now. So a difference here has to be meant.
"""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import BatchProvider
from extraction_pipeline.providers.endpoint import (
    AnthropicOutput,
    GeminiSchemaField,
    ProviderEndpoint,
)
from extraction_pipeline.providers.folder_endpoint import FolderEndpoint
from extraction_pipeline.providers.registry import ProviderName, build_api, build_provider
from extraction_pipeline_tests.providers.sample_request import CUSTOM_ID, sample_request

GOLDEN = Path(__file__).parent / "golden"
HOST = "https://host"
TOOL = ProviderEndpoint(HOST, "k", anthropic_output=AnthropicOutput.TOOL)
AS_IS = ProviderEndpoint(HOST, "k", gemini_schema_field=GeminiSchemaField.RESPONSE_JSON_SCHEMA)
PLAIN = ProviderEndpoint(HOST, "k")
API_WAYS = {
    "openai": build_api(ProviderName.OPENAI, PLAIN),
    "anthropic_format": build_api(ProviderName.ANTHROPIC, PLAIN),
    "anthropic_tool": build_api(ProviderName.ANTHROPIC, TOOL),
    "gemini_response_schema": build_api(ProviderName.GEMINI, PLAIN),
    "gemini_response_json_schema": build_api(ProviderName.GEMINI, AS_IS),
    "infrai": build_api(ProviderName.INFRAI, PLAIN),
}
WAYS: dict[str, BatchProvider] = {
    **API_WAYS,
    "outside": build_provider(ProviderName.OUTSIDE, FolderEndpoint("/shared")),
}
EVERY_WAY = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@pytest.mark.parametrize("name", WAYS)
def test_the_request_line_is_the_golden_one(name):
    line = WAYS[name].encode_request(sample_request()) + b"\n"
    assert line == (GOLDEN / f"{name}.jsonl").read_bytes()


def test_there_is_a_golden_line_for_every_provider_and_no_other():
    assert {path.stem for path in GOLDEN.iterdir()} == set(WAYS)
    assert {way.name for way in WAYS.values()} | {"local"} == set(ProviderName)


@EVERY_WAY
def test_the_order_of_parameters_does_not_matter(way: BatchProvider):
    one = sample_request(parameters={"temperature": 0, "seed": 7})
    other = sample_request(parameters={"seed": 7, "temperature": 0})
    assert way.encode_request(one) == way.encode_request(other)


@EVERY_WAY
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_stays_one_line_and_comes_back(way: BatchProvider, text: str):
    line = way.encode_request(sample_request(document=text))
    assert b"\n" not in line and b"\r" not in line
    assert text in _strings(json.loads(line))


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in inner for text in _strings(one)]


@EVERY_WAY
def test_text_that_is_no_unicode_is_refused_by_its_custom_id(way: BatchProvider):
    with pytest.raises(ConfigurationError, match=CUSTOM_ID) as caught:
        way.encode_request(sample_request(document="Jane\ud800Doe"))
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        *(("openai", taken) for taken in ("model", "messages", "response_format", "max_tokens")),
        *(("anthropic_format", taken) for taken in ("system", "output_config", "max_tokens")),
        *(("anthropic_tool", taken) for taken in ("tools", "tool_choice", "stream")),
        *(("gemini_response_schema", taken) for taken in ("responseSchema", "max_output_tokens")),
        *(("gemini_response_json_schema", taken) for taken in ("response_json_schema",)),
        *(("infrai", taken) for taken in ("metadata", "response_format", "model")),
    ],
)
def test_a_parameter_that_the_pipeline_sets_is_refused(name: str, parameter: str):
    with pytest.raises(ConfigurationError, match=parameter):
        WAYS[name].encode_request(sample_request(parameters={parameter: 1}))
