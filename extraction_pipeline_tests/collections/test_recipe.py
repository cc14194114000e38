"""The fingerprint of an extraction version changes with its meaning and with nothing else."""

import dataclasses
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.collections.recipe import (
    Recipe,
    changed_parts,
    fingerprint,
    recipe_document,
)

RECIPE = Recipe(
    instructions="Find the diagnoses.",
    schema_name="discharge_summary",
    schema_version="discharge_summary/1",
    json_schema={"type": "object", "properties": {"a": {"type": "string"}}},
    provider="local",
    model="rules-baseline",
    parameters={"temperature": 0, "seed": 7},
    max_output_tokens=4096,
)
OTHERS: dict[str, Any] = {
    "instructions": "Find the diagnoses!",
    "schema_name": "other",
    "schema_version": "discharge_summary/2",
    "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "provider": "openai",
    "model": "other",
    "parameters": {"temperature": 1, "seed": 7},
    "max_output_tokens": 4097,
}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
parameters = st.dictionaries(st.text(max_size=6), json_values, max_size=4)


def test_the_fingerprint_is_the_hash_of_canonical_json():
    canonical = json.dumps(recipe_document(RECIPE), sort_keys=True, separators=(",", ":"))
    assert fingerprint(RECIPE) == hashlib.sha256(canonical.encode()).hexdigest()


def test_the_fingerprint_of_a_known_recipe_stays():
    # A change here makes every version that was ever used look changed.
    assert fingerprint(RECIPE) == "c5a7729c39e4d4c981c42d792c0a59f64a4171f3f66972e9f134e1a69479ea0c"


def test_every_part_counts():
    assert set(OTHERS) == {part.name for part in dataclasses.fields(Recipe)}
    assert set(recipe_document(RECIPE)) == set(OTHERS)
    for part, value in OTHERS.items():
        other = dataclasses.replace(RECIPE, **{part: value})
        assert fingerprint(other) != fingerprint(RECIPE)
        expected = "parameters.temperature" if part == "parameters" else part
        assert changed_parts(recipe_document(RECIPE), recipe_document(other)) == (expected,)


def test_what_came_and_what_went_is_named():
    old = recipe_document(RECIPE)
    new = recipe_document(dataclasses.replace(RECIPE, parameters={"seed": 7, "top_p": 1}))
    assert changed_parts(old, new) == ("parameters.temperature", "parameters.top_p")
    without = {part: value for part, value in old.items() if part != "provider"}
    assert changed_parts(without, old) == ("provider",)
    assert changed_parts(old, without) == ("provider",)


def test_a_missing_parameter_is_not_the_same_as_a_null():
    null = recipe_document(dataclasses.replace(RECIPE, parameters={"stop": None}))
    none = recipe_document(dataclasses.replace(RECIPE, parameters={}))
    assert changed_parts(null, none) == ("parameters.stop",)


def test_true_is_not_one_and_a_whole_fraction_is():
    def of(value):
        return dataclasses.replace(RECIPE, parameters={"x": value})

    assert fingerprint(of(True)) != fingerprint(of(1))
    assert changed_parts(recipe_document(of(True)), recipe_document(of(1))) == ("parameters.x",)
    assert fingerprint(of(1.0)) == fingerprint(of(1))
    assert fingerprint(of([{"y": 0.0}])) == fingerprint(of([{"y": 0}]))


def test_a_value_that_json_lacks_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        fingerprint(dataclasses.replace(RECIPE, parameters={"x": float("nan")}))


@given(parameters)
def test_order_of_keys_and_a_way_through_storage_change_nothing(values):
    recipe = dataclasses.replace(RECIPE, parameters=values)
    turned = dataclasses.replace(RECIPE, parameters=dict(reversed(values.items())))
    assert fingerprint(recipe) == fingerprint(turned)
    stored = json.loads(json.dumps(recipe_document(recipe)))
    assert changed_parts(stored, recipe_document(turned)) == ()


@given(parameters, parameters)
def test_parts_are_named_exactly_where_the_fingerprints_differ(one, other):
    first = dataclasses.replace(RECIPE, parameters=one)
    second = dataclasses.replace(RECIPE, parameters=other)
    changed = changed_parts(recipe_document(first), recipe_document(second))
    assert bool(changed) == (fingerprint(first) != fingerprint(second))
