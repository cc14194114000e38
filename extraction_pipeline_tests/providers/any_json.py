"""Any JSON that names what a wire format names, and what must come of it as a result."""

from typing import Any

from hypothesis import strategies as st

from extraction_pipeline.providers.base import AnswerOutcome, DecodedResult


def json_with(names: str, words: str = "") -> st.SearchStrategy[Any]:
    """Any JSON whose objects have these names, and among whose texts are these words; both are
    given with blanks between them."""
    values = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    keys = st.sampled_from(names.split())
    return st.recursive(
        values | st.sampled_from(words.split()) if words else values,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=25,
    )


def assert_has_an_outcome(decoded: DecodedResult) -> None:
    """It is one of the outcomes there are, and its text, if any, is one that can be stored."""
    assert decoded.outcome in AnswerOutcome
    assert (decoded.text or "").encode() is not None
