"""How signatures are told from one another, without a server."""

import base64

import pytest
from starlette.datastructures import Headers

from extraction_pipeline.webhooks.refusal import RefusalLog, Refused, Why
from extraction_pipeline.webhooks.secret import keys_of, split_secrets
from extraction_pipeline.webhooks.shared_secret import SharedSecret
from extraction_pipeline.webhooks.standard import StandardSignature
from extraction_pipeline_tests.webhooks.signing import KEY, SECRET, batch_event, headers

BODY = batch_event("batch_1")


def test_the_tolerance_may_be_narrower_than_the_schemes() -> None:
    sent = Headers(headers(BODY, age=60))
    assert StandardSignature([SECRET], 90.0).check(sent, BODY)
    with pytest.raises(Refused, match="too far from now"):
        StandardSignature([SECRET], 30.0).check(sent, BODY)


@pytest.mark.parametrize(
    ("secret", "key"),
    [
        (SECRET, KEY),
        (SECRET.rstrip("="), KEY),
        (SECRET.removeprefix("whsec_"), KEY),  # as Gemini may give it
        ("words-that-are-no-base64", b"words-that-are-no-base64"),
        ("abcdefghijklmnop", b"abcdefghijklmnop"),  # as OpenAI's own client takes it
    ],
)
def test_a_secret_is_taken_as_each_provider_writes_it(secret: str, key: bytes) -> None:
    assert key in keys_of(secret)
    assert StandardSignature([secret], 300.0).check(Headers(headers(BODY, key=key)), BODY)


def test_several_secrets_are_split_and_bad_ones_are_not_quoted() -> None:
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    assert split_secrets(f" {SECRET},{other}\n, ") == [SECRET, other]
    assert split_secrets("") == []
    for wrong in (
        "hidden",
        "whsec_hidden==",
        "whsec_" + "hidden?" * 4,
        "hidden-hidden-\u00fc-hidden",
    ):
        with pytest.raises(ValueError, match="holds a secret") as refusal:
            split_secrets(f"{SECRET},{wrong}")
        assert "hidden" not in str(refusal.value)


def test_what_is_said_of_a_wrong_one_is_true_of_its_kind() -> None:
    with pytest.raises(Refused, match="its signature fits none of the secrets"):
        StandardSignature([SECRET], 300.0).check(Headers(headers(BODY, key=b"x" * 24)), BODY)
    with pytest.raises(Refused, match="its secret is none of those that are set"):
        SharedSecret([SECRET]).check(Headers({"X-Webhook-Secret": "x" * 24}), BODY)


def test_a_flood_of_refusals_is_one_line_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RefusalLog()
    for _ in range(1000):
        log.note("openai", Why.STALE)
    log.note("openai", Why.NOT_SIGNED)
    assert len(caplog.records) == 2
    monkeypatch.setattr("extraction_pipeline.webhooks.refusal.NOTED_SECONDS", 0.0)
    log.note("openai", Why.STALE)
    assert "and 999 more" in caplog.records[-1].getMessage()
