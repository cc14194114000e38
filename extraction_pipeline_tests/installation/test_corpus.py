"""Which corpus a command reads, and what a home remembers of it."""

from pathlib import Path

import pytest

from extraction_pipeline.collections.collection import Collection
from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import ConfigurationError, SourceError
from extraction_pipeline.installation.corpus import VARIABLE, Corpus, choose_corpus
from extraction_pipeline.settings import SHIPPED_COLLECTIONS


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was told; nothing is chosen yet, and the corpora are in the current folder."""
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "documents" / "payer_notes").mkdir(parents=True)
    (tmp_path / "link").symlink_to("documents")
    return []


def shipped(corpus: Corpus | None) -> dict[str, Collection]:
    """The shipped collections over a corpus, or over the samples."""
    environ = {} if corpus is None else {VARIABLE: corpus.place}
    return {one.name: one for one in load_collections(SHIPPED_COLLECTIONS, environ)}


@pytest.mark.parametrize("named", ["documents", "link", "documents/payer_notes/..", "./link/"])
def test_a_corpus_means_the_same_however_it_is_named(
    tmp_path: Path, told: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = str((tmp_path / "documents").resolve())
    assert choose_corpus(tmp_path, Path(named), told.append) == Corpus(expected, given=True)
    monkeypatch.setenv(VARIABLE, named)
    assert choose_corpus(tmp_path, None, told.append) == Corpus(expected)
    assert told == []


def test_a_home_remembers_what_the_command_line_gave_and_says_so(
    tmp_path: Path, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert choose_corpus(tmp_path, None, told.append) is None
    chosen = choose_corpus(tmp_path, Path("documents"), told.append)
    assert chosen is not None
    monkeypatch.setenv(VARIABLE, "")
    assert choose_corpus(tmp_path, None, told.append) is None, "it may not have been of use"
    chosen.remember(tmp_path)
    assert choose_corpus(tmp_path, None, told.append) == Corpus(chosen.place, remembered=True)
    assert len(told) == 1
    assert f"Documents of {chosen.place}, as before" in told[0]


@pytest.mark.parametrize("named", ["link", "elsewhere", "s3://bucket/letters"])
def test_the_environment_wins_for_its_command_alone(
    tmp_path: Path, told: list[str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Corpus("/data", given=True).remember(tmp_path)
    monkeypatch.setenv(VARIABLE, named)
    chosen = choose_corpus(tmp_path, None, told.append)
    assert chosen is not None
    assert chosen.place == (named if "://" in named else str((tmp_path / named).resolve()))
    chosen.remember(tmp_path)
    monkeypatch.setenv(VARIABLE, "")
    assert choose_corpus(tmp_path, None, told.append) == Corpus("/data", remembered=True)


def test_a_corpus_without_a_folder_for_a_collection_lacks_it(
    tmp_path: Path, told: list[str]
) -> None:
    Corpus(str(tmp_path / "documents"), given=True).remember(tmp_path)
    corpus = choose_corpus(tmp_path, None, told.append)
    assert corpus is not None
    collections = shipped(corpus)
    corpus.require(collections["payer_notes"])
    with pytest.raises(SourceError, match=r"this home remembers, .*documents, has"):
        corpus.require(collections["care_protocols"])
    lacking = corpus.lacking(list(collections.values()))
    assert [one.name for one in lacking] == ["care_protocols", "discharge_summaries"]
    with pytest.raises(ConfigurationError, match="named after a collection"):
        corpus.lacking([collections["care_protocols"]])
    assert not corpus.lacks(shipped(None)["care_protocols"]), "which lies elsewhere"
