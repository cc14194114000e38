"""The members of a JSON object, with their text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.providers.json_members import json_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(), VALUES), indent=st.sampled_from([None, 1]))
def test_every_value_comes_with_its_own_text(value, indent):
    line = json.dumps(value, indent=indent)
    members = json_members(line.encode())
    assert list(members) == list(value)
    for name, inner in value.items():
        assert json.loads(members[name].text) == inner
        assert members[name].text in line


def test_what_is_within_a_value_stays_as_it_is_written():
    line = b'\xef\xbb\xbf { "record" : {"a": 1.50, "a":2, "b":"\\u00e9\\u2028"} ,"n":7 }\r\n'
    members = json_members(line)
    assert members["record"].text == '{"a": 1.50, "a":2, "b":"\\u00e9\\u2028"}'
    assert members["n"].value == 7


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b"{}{}",
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1,,"b":2}',
        b'{"a" 1}',
        b"{1:1}",
        b'{"a":}',
        b'{"a":1,"a":1}',
        b'{"Jane":\xff}',
        b"\0\0\0",
        b'{"a":' + b"[" * 100_000,
    ],
)
def test_anything_else_is_refused_and_not_quoted(line):
    with pytest.raises(ValueError, match="not one JSON object") as caught:
        json_members(line)
    assert "Jane" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_a_number_of_any_length_can_be_read():
    line = b'{"a":' + b"9" * 10_000 + b"}"
    assert json_members(line)["a"].text == "9" * 10_000
