"""What counts as a disagreement between providers."""

from dataclasses import replace

from benchmarks.every_provider import Line, disagreements

LINE = Line("notes", "openai", 2, 1, 2, 0, 0, 0, 0, {"a" * 64: "1", "b" * 64: "2"})
OTHER = replace(LINE, provider="gemini")


def test_the_same_everywhere_is_no_disagreement() -> None:
    elsewhere = replace(LINE, collection="letters", documents=9, records={})
    assert disagreements([LINE, OTHER, elsewhere]) == []


def test_counts_jobs_and_records_are_told_apart() -> None:
    split = replace(OTHER, jobs=2)
    (told,) = disagreements([LINE, split])
    assert told.startswith("notes: gemini and openai differ in counts")
    changed = replace(OTHER, records={**LINE.records, "b" * 64: "3"})
    (told,) = disagreements([LINE, changed])
    assert told == "notes: gemini and openai differ in 1 records, among them bbbbbbbbbbbb"
    lost = replace(OTHER, records={"a" * 64: "1"}, failed=1)
    assert len(disagreements([LINE, OTHER, lost])) == 2
