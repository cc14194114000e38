import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from extraction_pipeline.schemas.dates import StatedDate, words_carry_date


@pytest.mark.parametrize(
    ("as_written", "iso"),
    [
        ("2031-05-03", "2031-05-03"),
        ("3 May 2031", "2031-05-03"),
        ("May 3rd, 2031", "2031-05-03"),
        ("05/03/31", "2031-05-03"),
        ("03.05.2031 14:20", "2031-05-03"),
        ("20310503", "2031-05-03"),
        ("20310503142000+0100", "2031-05-03"),
        ("2031年5月3日", "2031-05-03"),
    ],
)
def test_a_date_that_the_words_carry_is_kept(as_written, iso):
    assert StatedDate(as_written=as_written, iso=iso).iso == iso


@pytest.mark.parametrize(
    ("as_written", "iso"),
    [
        ("May 2031", "2031-05-01"),
        ("2031", "2031-01-01"),
        ("03/05/2030", "2031-05-03"),
        ("yesterday", "2031-05-03"),
        ("3 May 2031", "2031-05-04"),
        ("3 May 2031", "2031-02-30"),
        ("3 May 2031", "2031-05"),
        ("3 May 2031", "03.05.2031"),
        ("3 May 2031", ""),
        ("31", "2031-05-31"),
    ],
)
def test_an_iso_date_without_support_is_dropped_and_the_words_stay(as_written, iso):
    stated = StatedDate(as_written=as_written, iso=iso)
    assert stated.iso is None
    assert stated.as_written == as_written


def test_words_are_needed_and_an_iso_date_is_text():
    with pytest.raises(ValidationError):
        StatedDate(as_written=" ", iso=None)
    with pytest.raises(ValidationError):
        StatedDate(as_written="3 May 2031", iso=20310503)


@given(st.dates())
def test_every_full_date_carries_itself(day):
    for written in (day.isoformat(), day.strftime("%d/%m/") + f"{day.year:04}"):
        assert words_carry_date(written, day.isoformat())
