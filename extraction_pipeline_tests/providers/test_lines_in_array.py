"""A body that is made of a file of lines while it is sent."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.providers.lines_in_array import lines_in_array


@given(
    lines=st.lists(st.text(min_size=1), min_size=1),
    size=st.integers(1, 40),
)
def test_the_lines_come_as_one_array_whatever_the_pieces(tmp_path_factory, lines, size):
    path = tmp_path_factory.mktemp("lines") / "payload"
    path.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    with lines_in_array(path, b'{"requests":[', b"]}\n") as body:
        length = len(body)
        pieces = list(iter(lambda: body.read(size), b""))
    whole = b"".join(pieces)
    assert json.loads(whole) == {"requests": lines}
    assert (len(whole), max(map(len, pieces)) <= size) == (length, True)


def test_without_a_size_it_is_read_in_few_pieces(tmp_path):
    path = tmp_path / "payload"
    path.write_bytes(b"1\n2\n")
    with lines_in_array(path, b"[", b"]") as body:
        assert b"".join(iter(body.read, b"")) == b"[1,2]"


@pytest.mark.parametrize("content", [b"", b"1\n2"])
def test_a_file_that_does_not_end_with_a_newline_is_refused(tmp_path, content):
    path = tmp_path / "payload"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="newline"), lines_in_array(path, b"[", b"]"):
        pass
