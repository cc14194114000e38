"""Contracts over time: what is kept, what changed, and what a damaged file does."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from extraction_pipeline.contracts.changes import changes
from extraction_pipeline.contracts.history import ContractHistory
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers.contract import ContractText

FIRST = datetime(2026, 1, 1, tzinfo=UTC)
ONE, OTHER = ContractText.of({"version": "1"}), ContractText.of({"version": "2"})


def test_a_contract_is_kept_once_with_the_time_of_its_first_reading(tmp_path: Path) -> None:
    history = ContractHistory(tmp_path)
    assert history.keep("infrai", "ai.batch.submit", ONE, FIRST) is None
    assert history.keep("infrai", "ai.batch.submit", ONE, FIRST + timedelta(days=1)) is None
    replaced = history.keep("infrai", "ai.batch.submit", OTHER, FIRST + timedelta(days=2))
    assert replaced is not None and replaced.contract_hash == ONE.contract_hash
    kept = ContractHistory(tmp_path).versions("infrai", "ai.batch.submit")
    assert [(one.contract_hash, (one.read_at - FIRST).days) for one in kept] == [
        (ONE.contract_hash, 0),
        (OTHER.contract_hash, 2),
    ]
    assert kept[-1].document == OTHER.document
    back = history.keep("infrai", "ai.batch.submit", ONE, FIRST + timedelta(days=3))
    assert back is not None and back.contract_hash == OTHER.contract_hash
    assert history.versions("infrai", "ai.batch.status") == []
    assert list(history.all_of("infrai")) == ["ai.batch.submit"]


def test_a_subject_stays_in_the_folder_of_its_provider(tmp_path: Path) -> None:
    ContractHistory(tmp_path).keep("infrai", "../../ai batch", ONE, FIRST)
    (file,) = (tmp_path / "contracts" / "infrai").iterdir()
    assert file.parent.parent.parent == tmp_path


@pytest.mark.parametrize("content", [b"", b"{oops", b'{"versions": [{"contract_hash": "x"}]}'])
def test_a_damaged_file_is_named_with_a_remedy(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "contracts" / "infrai" / "x.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"x\.json cannot be read.*Move the file away"):
        ContractHistory(tmp_path).keep("infrai", "x", ONE, FIRST)
    assert path.read_bytes() == content


def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "contracts").write_text("a file")
    with pytest.raises(ConfigurationError):
        ContractHistory(tmp_path).keep("infrai", "x", ONE, FIRST)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": {"b": [1, {"c": 2}]}}, {"a": {"b": [1, {"c": 3}]}}, ["a.b[1].c: 2 → 3"]),
        ({"a": 1}, {"b": None}, ["a: 1 is gone", "b: null is new"]),
        ({"a": [1, 2]}, {"a": [2, 3, 4]}, ["a: 1 is gone", "a: 3 is new", "a: 4 is new"]),
        ({"a": "x" * 200}, {}, [f'a: "{"x" * 79}… is gone']),
        ({"a": 1}, {"a": {"b": 1}}, ['a: 1 → {"b": 1}']),
    ],
)
def test_changes_name_their_place(before: object, after: object, told: list[str]) -> None:
    assert changes(json.dumps(before), json.dumps(after)) == told
