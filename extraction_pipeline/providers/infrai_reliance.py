"""How what Infrai says of a capability differs from what its adapter relies on: pure.

What a description leaves out is no difference: nothing can be concluded from it.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from extraction_pipeline.providers.contract import Call
from extraction_pipeline.providers.contract_reading import Difference
from extraction_pipeline.providers.infrai_contract import RESULTS, STATUS, SUBMIT
from extraction_pipeline.providers.infrai_discovery import CapabilityContract
from extraction_pipeline.providers.infrai_translation import END_STATES, KNOWN_ERRORS, KNOWN_STATES

_ID = ("batch_id", "id", "job_id")
_STATE = ("state", "status")
_NEEDED_ANSWERS: Mapping[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    SUBMIT.purpose: (
        (_ID, "a job that was accepted could not be recorded, and every submission would be held"),
        (_STATE, "the answer to a submission could not be read, and every one would be held"),
    ),
    STATUS.purpose: ((_STATE, "no job would be seen to end"),),
    RESULTS.purpose: ((("items", "results", "responses"), "results could not be read"),),
}
_UNDESCRIBED = {
    "requests": "a submission would carry its requests under a name that is not known",
    "metadata": "the job key in it may be ignored; the idempotency key still names the job",
    "idempotency_key": "a repeated submission may make a second job; the header names it as well",
}
_ITEM = frozenset({"capability", "body"})


def differences_of(call: Call, described: CapabilityContract) -> tuple[Difference, ...]:
    """The differences of the capability behind a call, those that break something first."""
    found = [*_of_call(call, described), *_of_answer(call, described), *_of_errors(described)]
    if call is SUBMIT:
        found += _of_submission(described)
    return tuple(sorted(found, key=lambda one: not one.breaks))


def undescribed(capability: str, needed_for: str) -> Difference:
    """A capability that the provider does not know."""
    return Difference(f"{capability} is not described", f"{needed_for} has to be expected to fail")


def unavailable(capability: str) -> Difference:
    """A capability that is switched off."""
    return Difference(
        f"{capability} is not available",
        "a matter of design, not of trying again: choose another provider or region",
    )


def _of_call(call: Call, described: CapabilityContract) -> Iterator[Difference]:
    if not described.available:
        yield unavailable(described.capability)
    if described.method and described.method.upper() != call.method:
        yield Difference(f"the method is {described.method}, not {call.method}", "calls would fail")
    if described.path and _shape(described.path) != _shape(call.path):
        yield Difference(
            f"the path is {described.path}, not {call.path}", "calls would not be found"
        )


def _shape(path: str) -> str:
    """A path without the host, and without the names of its variable parts, which come as `{id}`,
    `:id` or `<id>`."""
    path = re.sub(r"^https?://[^/]+", "", path)
    return re.sub(r"\{[^}/]*\}|(?<=/):[^/]+|<[^>/]*>", "{}", path).rstrip("/")


def _of_submission(described: CapabilityContract) -> Iterator[Difference]:
    if not described.parameters:
        return
    sent = {name.partition(".")[0] for name in SUBMIT.sends}
    for parameter in described.parameters:
        if parameter.required and parameter.name not in sent:
            yield Difference(
                f"the parameter {parameter.name} is required", "submissions without it are refused"
            )
    for name in sorted(sent - described.parameter_names()):
        yield Difference(
            f"the parameter {name} is not described", _UNDESCRIBED[name], breaks=name == "requests"
        )
    for name in sorted(_required_of_items(described) - _ITEM):
        yield Difference(
            f"a request needs {name}", "requests, which hold capability and body, are refused"
        )


def _required_of_items(described: CapabilityContract) -> set[str]:
    document = json.loads(described.document)
    value = document.get("params") or document.get("parameters")
    for name in ("properties", "requests", "items", "required"):
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name) for name in value} if isinstance(value, list) else set()


def _of_answer(call: Call, described: CapabilityContract) -> Iterator[Difference]:
    names = {field.name for field in described.answer}
    if not names:
        return
    for spellings, meaning in _NEEDED_ANSWERS.get(call.purpose, ()):
        if not names.intersection(spellings):
            yield Difference(f"the answer has none of {', '.join(spellings)}", meaning)
    states = _states(json.loads(described.document))
    if states and not states & END_STATES:
        yield Difference("no state is known as an end", "no job would be seen to end")
    for state in sorted(states - KNOWN_STATES):
        yield Difference(f"the state {state} is not known", "it counts as no end", breaks=False)


def _states(document: Mapping[str, Any]) -> set[str]:
    """The words for states in the schema of an answer."""
    answer = document.get("response")
    properties = answer.get("properties") if isinstance(answer, dict) else None
    if not isinstance(properties, dict):
        return set()
    described = [properties.get(name) for name in _STATE]
    words = [one.get("enum") for one in described if isinstance(one, dict)]
    return {str(word).lower() for found in words if isinstance(found, list) for word in found}


def _of_errors(described: CapabilityContract) -> Iterator[Difference]:
    for error in described.errors:
        if error.http_status is None and error.code.upper() not in KNOWN_ERRORS:
            yield Difference(
                f"the error {error.code} is not known",
                "under a good status it counts as an outcome in doubt",
                breaks=False,
            )
