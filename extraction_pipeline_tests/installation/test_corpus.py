"""Which corpus a command reads, and what a home remembers of it."""

from pathlib import Path

import pytest

from extraction_pipeline.installation.corpus import VARIABLE, choose_corpus


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was told; nothing is chosen yet, and the corpora are in the current folder."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents" / "letters").mkdir(parents=True)
    (tmp_path / "link").symlink_to("documents")
    return []


@pytest.mark.parametrize("named", ["documents", "link", "documents/letters/..", "./link/"])
def test_a_corpus_means_the_same_however_it_is_named(
    tmp_path: Path, told: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = str((tmp_path / "documents").resolve())
    assert choose_corpus(tmp_path, Path(named), told.append) == expected
    monkeypatch.setenv(VARIABLE, named)
    assert choose_corpus(tmp_path, None, told.append) == expected
    assert told == []


def test_a_home_remembers_its_corpus_and_says_so(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_corpus(tmp_path, None, told.append) is None
    chosen = choose_corpus(tmp_path, Path("documents"), told.append)
    monkeypatch.setenv(VARIABLE, "")
    assert choose_corpus(tmp_path, None, told.append, collection="payer_notes") is None
    assert choose_corpus(tmp_path, None, told.append, collection="letters") == chosen
    monkeypatch.setenv(VARIABLE, "")
    assert choose_corpus(tmp_path, None, told.append) == chosen
    assert len(told) == 2
    assert f"Documents of {chosen}, as before" in told[0]


def test_an_object_store_stays_as_it_is(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "s3://bucket/letters")
    assert choose_corpus(tmp_path, None, told.append) == "s3://bucket/letters"
