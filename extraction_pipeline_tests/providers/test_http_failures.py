"""Statuses, headers and exceptions, as pure functions."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.base import FailureKind
from extraction_pipeline.providers.endpoint import ProviderEndpoint
from extraction_pipeline.providers.errors import LONGEST_RETRY_AFTER
from extraction_pipeline.providers.http_failures import (
    failure_kind,
    proves_refusal,
    remedy_for,
    retry_after_seconds,
    safe_code,
    safe_token,
)

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-4"}, 0.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:01:30 -0000"}, 90.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "99999999999"}, LONGEST_RETRY_AFTER),
        ({"retry-after-ms": "250", "retry-after": "30"}, 0.25),
        ({"retry-after-ms": "later", "retry-after": "30"}, 30.0),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after_seconds(headers, NOW) == seconds


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_retry_after_is_within_bounds(milliseconds, value):
    seconds = retry_after_seconds({"retry-after-ms": milliseconds, "retry-after": value}, NOW)
    assert seconds is None or 0 <= seconds <= LONGEST_RETRY_AFTER


@given(st.integers(100, 599))
def test_only_an_answer_of_the_400s_proves_a_refusal(status):
    if proves_refusal(status):
        assert 400 <= status < 500 and status not in (408, 409, 425)


@given(st.integers(300, 599))
def test_an_account_code_holds_whatever_the_status(status):
    assert failure_kind(status, "no_credit", frozenset({"no_credit"})) is FailureKind.ACCOUNT


@pytest.mark.parametrize(
    ("value", "token"),
    [("req_a-1", "req_a-1"), ("", None), ("a b", None), ("é", None), (7, None), ("x" * 201, None)],
)
def test_only_what_looks_like_an_id_is_logged(value, token):
    assert safe_token(value) == token


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.openai.com/v1",
        "ftp://host/v1",
        "https://",
        "https://u:p@host/v1",
        "https://host/v1?key=abc",
        "https://host:port/v1",
        "http://[::1/v1",
    ],
)
def test_a_base_url_that_cannot_be_used_is_refused_without_being_quoted(url):
    with pytest.raises(ConfigurationError) as caught:
        ProviderEndpoint(base_url=url)
    assert "u:p" not in str(caught.value) and "abc" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-a\n", " sk-a", "sk\u2013a", "sk a"])
def test_a_key_that_no_header_can_carry_is_refused_without_being_quoted(key):
    with pytest.raises(ConfigurationError) as caught:
        ProviderEndpoint(base_url="https://host/v1", api_key=key)
    assert key.strip() not in str(caught.value)


def test_an_endpoint_hides_its_key_and_settles_its_url():
    endpoint = ProviderEndpoint(base_url="http://127.0.0.1:1/v1/", api_key="sk-a", project="")
    assert endpoint.base_url == "http://127.0.0.1:1/v1"
    assert endpoint.project is None
    assert endpoint.is_loopback
    assert "sk-a" not in repr(endpoint)
    assert not ProviderEndpoint(base_url="https://127.0.0.1.example.org").is_loopback


@pytest.mark.parametrize(
    ("status", "words"),
    [(400, "API key"), (401, "API key"), (402, "credit"), (403, "API key"), (429, "limits")],
)
def test_an_account_at_fault_is_told_what_to_check(status, words):
    assert words in (remedy_for(status, FailureKind.ACCOUNT) or "")


@pytest.mark.parametrize(
    "code",
    [
        *("insufficient_quota", "token_limit_exceeded", "RESOURCE_EXHAUSTED", "429", "in_progress"),
        *("BadRequestError", "BATCH_STATE_RUNNING", "billing.hard-limit", "x2"),
    ],
)
def test_codes_are_told_as_they_are(code):
    assert safe_code(code) == code


@pytest.mark.parametrize(
    "text",
    [
        *("Jane_Doe_HIV", "Doe.Jane:dx", "SmFuZSBEb2UgaGFzIEhJVg==", "Jane Doe", "", None, 7),
        *("a" * 65, "jane+doe", "Jane-Doe", "doe_Jane"),
    ],
)
def test_what_may_be_a_name_is_no_code(text):
    assert safe_code(text) is None
