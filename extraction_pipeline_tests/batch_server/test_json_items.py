"""Reading a large JSON object item by item."""

import io
import json
import tracemalloc
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extraction_pipeline.batch_server import json_items
from extraction_pipeline.batch_server.json_items import JsonItems, MalformedJson

FLAT = (frozenset({"requests"}),)
DEEP = (frozenset({"batch"}), frozenset({"input", "in_put"}), frozenset({"requests"}))


class Slow(io.BytesIO):
    """Gives a few bytes at a time, whatever is asked for: every token is cut somewhere."""

    step = 1

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(self.step)


def read(content: bytes, path: Any = FLAT, step: int = 1) -> tuple[list[Any], JsonItems]:
    file = Slow(content)
    file.step = step
    items = JsonItems(cast(BinaryIO, file), path)
    return list(items), items


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
beside = st.dictionaries(st.text().filter(lambda name: name != "requests"), values, max_size=3)


@given(
    st.lists(values, max_size=5),
    beside,
    beside,
    st.sampled_from([1, 2, 7, 1000]),
    st.booleans(),
    st.sampled_from([None, 2]),
)
def test_it_reads_what_json_reads(requests, before, after, step, ascii_only, indent):
    body = {**before, "requests": requests, **after}
    content = json.dumps(body, ensure_ascii=ascii_only, indent=indent)
    items, reader = read(content.encode("utf-8", "surrogatepass"), step=step)
    assert items == requests
    assert reader.found
    assert reader.rest == {name: value for name, value in body.items() if name != "requests"}


def test_the_array_can_lie_deep_under_either_name():
    content = b'{"batch": {"name": "n", "in_put": {"requests": [{"a": 1}, 2], "x": 3}}, "y": [4]}'
    items, reader = read(content, DEEP)
    assert items == [{"a": 1}, 2]
    assert reader.rest == {"batch": {"name": "n", "in_put": {"x": 3}}, "y": [4]}


@pytest.mark.parametrize("content", [b"{}", b'{"requests": null}', b'{"requests": {}}'])
def test_an_array_that_is_not_there_is_not_found(content):
    items, reader = read(content)
    assert items == [] and not reader.found
    assert reader.rest == json.loads(content)


MALFORMED = [
    b"",
    b" ",
    b"[]",
    b"1",
    b"{",
    b'{"requests"',
    b'{"requests": [',
    b'{"requests": [1',
    b'{"requests": [1, ]}',
    b'{"requests": [1 2]}',
    b'{"requests": [1,, 2]}',
    b'{"requests": [], }',
    b'{"requests": []} {}',
    b'{"requests": []} \xff',
    b'{"requests": [], "requests": [1]}',
    b"{1: 2}",
    b'{"requests": [{"a": tru}]}',
    b'{"requests": ["abc]}',
    b'{"requests": ["a\nb"]}',
    b'{"requests": ["\\u12"]}',
    b'{"requests": [NaN]}',
    b'{"requests": ["\xff"]}',
    b'{"requests": ["\xc3',
    b'{"requests": [' + b"9" * 5000 + b"]}",
    b'{"requests": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}",
]


@pytest.mark.parametrize("content", MALFORMED, ids=lambda content: repr(content[:30]))
@pytest.mark.parametrize("step", [1, 100_000])
def test_what_is_malformed_is_said_to_be(content, step):
    if len(content) > 100_000 and step == 1:
        content = b'{"requests": [' + b"[" * 2000 + b"]" * 2000 + b"]}"
    with pytest.raises(MalformedJson) as caught:
        read(content, step=step)
    assert "abc" not in str(caught.value)


def test_a_fault_early_in_a_large_body_is_told_without_reading_it_all():
    file = io.BytesIO(b'{"requests": [{"a": oops}, ' + b"1, " * 2_000_000)
    with pytest.raises(MalformedJson):
        list(JsonItems(file, FLAT))
    assert file.tell() <= 2 * json_items.PIECE


def test_memory_holds_one_item_at_a_time():
    item = json.dumps({"text": "word " * 10_000}).encode()
    content = b'{"requests": [' + b",".join([item] * 600) + b"]}"
    assert len(content) > 30_000_000
    tracemalloc.start()
    try:
        assert sum(1 for _ in JsonItems(io.BytesIO(content), FLAT)) == 600
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()
