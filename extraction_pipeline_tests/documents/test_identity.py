import hashlib
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.documents.identity import (
    content_hash,
    content_hash_of_stream,
    document_key,
    external_document_hash,
    text_hash,
)

well_formed = st.text(st.characters(exclude_categories=["Cs"]))


def test_the_hashes_are_those_the_design_names():
    assert content_hash(b"abc") == hashlib.sha256(b"abc").hexdigest()
    assert text_hash("é") == hashlib.sha256("é".encode()).hexdigest()
    assert external_document_hash("ehr", "12") == hashlib.sha256(b"ehr\x0012").hexdigest()
    assert document_key("v1", "a note") == hashlib.sha256(b"v1\x00a note").hexdigest()


@given(st.binary(max_size=5000))
def test_a_stream_has_the_hash_of_its_bytes(data):
    assert content_hash_of_stream(BytesIO(data)) == (content_hash(data), len(data))


def test_a_stream_longer_than_one_piece_is_read_to_its_end():
    data = bytes(range(256)) * 10_000
    assert content_hash_of_stream(BytesIO(data)) == (content_hash(data), len(data))


@given(well_formed.filter(lambda text: "\0" not in text), well_formed, well_formed)
def test_version_and_text_cannot_be_shifted_into_one_another(version, text, moved):
    if moved and "\0" not in moved:
        assert document_key(version + moved, text) != document_key(version, moved + text)


def test_a_nul_in_the_first_part_is_refused():
    with pytest.raises(ValueError, match="NUL"):
        external_document_hash("ehr\0", "12")
    with pytest.raises(ValueError, match="NUL"):
        document_key("v\0", "text")


def test_a_lone_surrogate_is_refused_without_quoting_the_text():
    with pytest.raises(ValueError, match="lone surrogate at 7") as caught:
        text_hash("secret \ud83d")
    assert "secret" not in str(caught.value)
    # A traceback must not carry the text either, by way of the codec's own error.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
