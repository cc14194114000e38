"""Collections that are wrong: each error names the file, the line and what to do."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extraction_pipeline.collections.loader import load_collections
from extraction_pipeline.errors import CollectionError
from extraction_pipeline_tests.collections.written import BY_RECORD, VALID, changed, write


def report(folder: Path, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(CollectionError) as caught:
        load_collections(folder, environ or {})
    return str(caught.value)


WRONG = {
    "syntax": ("show_paths: false", "show_paths: [false", 10, "Not valid YAML", "Check indent"),
    "tab": ("  kind: folder", "\tkind: folder", 5, "Not valid YAML", "not with tabs"),
    "unknown key": ("show_paths:", "colour: red\nshow_paths:", 9, "Unknown key 'colour'", "Remove"),
    "misspelt key": (
        "    model: ",
        "    modle: ",
        14,
        "Unknown key 'modle'",
        "Did you mean 'model'?",
    ),
    "misspelt in source": ("  include:", "  inculde:", 7, "Unknown key 'inculde'", "'include'?"),
    "missing key": ("    model: rules-baseline\n", "", 12, "'model' is missing", "Add model:"),
    "missing at the top": ("name: referral_letters\n", "", 1, "'name' is missing", "Add name:"),
    "twice": ("identity: content", "name: other", 8, "'name' is there twice", "in line 1"),
    "text for number": ("2048", '"2048"', 15, "must be a whole number", "without quotes"),
    "fraction": ("2048", "20.5", 15, "must be a whole number", "in digits"),
    "too small": ("max_attempts: 2", "max_attempts: 0", 16, "not valid", "Correct the value"),
    "number for text": ("rules-baseline", "4.1", 14, "must be text", "in quotes"),
    "empty value": ("rules-baseline", "", 14, "is empty", "Give it a value"),
    "text for bool": ("show_paths: false", "show_paths: never", 9, "true or false", "without"),
    "list for mapping": (
        "    parameters:\n      temperature: 0",
        "    parameters: [0]",
        17,
        "must be keys with values",
        "Indent",
    ),
    "ceiling without currency": (
        "max_attempts: 2",
        "max_attempts: 2\n    ceiling: {amount: 5}",
        17,
        "'currency' is missing",
        "Add currency:",
    ),
    "misspelt in ceiling": (
        "max_attempts: 2",
        "max_attempts: 2\n    ceiling: {amount: 5, currency: EUR, pre: day}",
        17,
        "Unknown key 'pre'",
        "Did you mean 'per'?",
    ),
    "period of a ceiling": (
        "max_attempts: 2",
        "max_attempts: 2\n    ceiling: {amount: 5, currency: EUR, per: week}",
        17,
        "must be 'total' or 'day'",
        "one of these",
    ),
    "no time": (
        "show_paths: false",
        "show_paths: false\nwaiting_budget: a day",
        10,
        "waiting_budget is no time such as 26h",
        "how long a batch may take",
    ),
    "too long a time": (
        "show_paths: false",
        "show_paths: false\nwaiting_budget: 61d",
        10,
        "waiting_budget is not between 1m and 60d",
        "how long a batch may take",
    ),
    "unknown provider": ("provider: local", "provider: lokal", 13, "must be 'local'", "one of"),
    "unknown identity": ("identity: content", "identity: name", 8, "must be 'content'", "one of"),
    "unknown kind": ("kind: folder", "kind: ftp", 4, "source.kind must be", "one of"),
    "no kind": ("  kind: folder\n", "", 4, "does not say its kind", "Add kind: folder"),
    "bad name": ("name: referral_letters", "name: Referral-Letters", 1, "form", "lower case"),
    "bad type": ("discharge_summary", "discharge summary", 3, "form", "my_package.my_type"),
    "no such version": (
        "active_version: v1",
        "active_version: v1x",
        10,
        "no extraction version 'v1x'",
        "Did you mean 'v1'?",
    ),
    "bad version name": ("  v1:\n", "  v1|x:\n", 12, "cannot be called 'v1|x'", "letters, digits"),
    "range in a version": ("  v1:\n", "  v1...v2:\n", 12, "cannot be called", "single ."),
    "no record ids": (
        "identity: content",
        "identity: external_id",
        8,
        "needs record ids",
        "record_id_column",
    ),
    "no source system": (
        "identity: content",
        "identity: external_id",
        8,
        "needs a source_system",
        "Add source_system:",
    ),
    "idle source system": (
        "identity: content",
        "source_system: archive",
        8,
        "has no meaning",
        "identity: external_id",
    ),
    "anchor": ("    parameters:", "    parameters: &p", 17, "Anchors and aliases", "Write the"),
    "tag": ("rules-baseline", "!!python/name:os.system x", 14, "Tags", "plain value"),
    "second document": ("show_paths: false", "---\na: 1", 9, "second document", "file of its own"),
    "key that is no text": ("identity: content", "[a]: content", 8, "key is not text", "plain"),
    "not finite": ("temperature: 0", "temperature: .inf", 18, "Not a number that JSON", "quotes"),
    "too large": ("temperature: 0", "temperature: 9007199254740993", 18, "Not a number", "quotes"),
    "half a number": ("temperature: 0", "temperature: 0b_", 18, "Not a number", "quotes"),
    "sixties": ("temperature: 0", f"temperature: {':'.join('1' * 999)}", 18, "Not a num", "quotes"),
    "character": ("rules-baseline", '"a\\0b"', 14, "U+0000", "Remove"),
    "half a surrogate": ("rules-baseline", '"a\\ud800"', 14, "U+D800", "Remove"),
    "no character": ("rules-baseline", '"\\UFFFFFFFF"', 1, "Not valid YAML", "Check"),
    "raw control": ("rules-baseline", "a\x07b", 14, "control character", "Remove"),
    "unset": ("path: letters", "path: ${LETTERS}", 6, "LETTERS is not set", "${LETTERS:-default}"),
    "malformed": ("path: letters", "path: ${LET TERS}", 6, "malformed", "${NAME:-default}"),
    "blank path": ("path: letters", "path: ' '", 6, "must not be blank", "a dot for here"),
    "no such home": ("path: letters", "path: ~nobody-here/x", 6, "absolute path", "Write it out"),
    "path and url": ("path: letters", "path: a\n  url: s3://b", 4, "give either `path`", "Correct"),
    "unset url": ("path: letters", "url: s3://${B}/x", 6, "B is not set", "default"),
    "absolute pattern": ('"*.txt"', '"/*.txt"', 7, "must be relative", "Correct"),
    "misplaced": ("rules-baseline", "${MODEL}", 14, "not allowed here", "only source.path"),
    "two prompts": (
        "    max_attempts: 2",
        "    instructions: a\n    instructions_file: b",
        12,
        "give either instructions or",
        "Correct",
    ),
    "no such prompt": (
        "    max_attempts: 2",
        "    instructions_file: b.txt",
        16,
        "No such file",
        "starts at this file's folder",
    ),
    "blank prompt": ("    max_attempts: 2", "    instructions: ' '", 16, "not be blank", "Correct"),
}


@pytest.mark.parametrize(("old", "new", "line", "cause", "remedy"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_line_and_remedy(tmp_path: Path, old, new, line, cause, remedy):
    file = write(tmp_path, changed(old, new))
    lines = [one for one in report(tmp_path).splitlines() if cause in one]
    assert len(lines) == 1
    assert lines[0].startswith(f"{file}:{line}: ")
    assert remedy in lines[0]


def test_one_slip_is_one_line(tmp_path: Path):
    for old, new in [
        ("    model: ", "    modle: "),
        ("temperature: 0", "temperature: .nan"),
        ("rules-baseline", '"a\\0b"'),
        ("path: letters", "path: ${LETTERS}"),
        ("show_paths: false", "show_paths: 'false'"),
        ("2048", "9999999999999999999999"),
    ]:
        write(tmp_path, changed(old, new))
        assert report(tmp_path).count("\n") == 0, (new, report(tmp_path))


def test_all_defects_of_all_files_are_reported_together(tmp_path: Path):
    text = changed("2048", "many").replace("show_paths", "show_path")
    first = write(tmp_path, text.replace("temperature: 0", "temperature: .inf"), "a.yaml")
    second = write(tmp_path, "name: [", "b.yaml")
    write(tmp_path, VALID, "c.yaml")
    text = report(tmp_path)
    assert [one.split(": ")[0] for one in text.splitlines()] == [
        f"{first}:9",
        f"{first}:15",
        f"{first}:18",
        f"{second}:1",
    ]


def test_a_name_in_two_files(tmp_path: Path):
    first = write(tmp_path, VALID, "a.yaml")
    second = write(tmp_path, "# one more\n" + VALID, "b.yml")
    assert report(tmp_path) == (
        f"{second}:2: The name 'referral_letters' is taken by {first}. Give one of the two another."
    )


def test_external_id_needs_the_column_of_the_record_ids(tmp_path: Path):
    write(tmp_path, BY_RECORD.replace("  record_id_column: record\n", ""))
    (tmp_path / "prompt.txt").write_text("Find it.")
    text = report(tmp_path, {"LETTERS": "/data"})
    assert ":7: identity: external_id needs record ids." in text
    assert text.count("\n") == 0


@pytest.mark.parametrize(
    ("content", "line", "cause"),
    [
        (b"", 1, "empty"),
        (b"# only a comment\n", 1, "empty"),
        (b"- a\n- b\n", 1, "no keys"),
        (b"just words\n", 1, "no keys"),
        (b"name: a\ndescription: caf\xe9\n", 2, "not UTF-8"),
        (VALID.encode("utf-16"), 1, "not UTF-8"),
        (b"a: " + b"[" * 5_000, 1, "Nested more than"),
        (b"a: " + b"{a: " * 5_000, 1, "Nested more than"),
        (b"a: " + b"x" * 300_000, 1, "longer than"),
        (b"a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 1, "Anchors and aliases"),
    ],
)
def test_files_that_are_no_collection_at_all(tmp_path: Path, content, line, cause):
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    text = report(tmp_path)
    assert text.startswith(f"{file}:{line}: ")
    assert cause in text
    assert text.count("\n") == 0


def test_a_key_of_any_length_makes_no_long_report(tmp_path: Path):
    write(tmp_path, VALID + f"? {'long ' * 9_000}\n: value\n")
    assert len(report(tmp_path)) < 1_000


def test_a_file_that_leads_nowhere(tmp_path: Path):
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    assert "cannot be read (No such file or directory)" in report(tmp_path)


def test_a_folder_that_is_missing_or_empty(tmp_path: Path):
    assert "cannot be read (No such file or directory)" in report(tmp_path / "missing")
    text = report(tmp_path)
    assert "no YAML file" in text
    assert "EXTRACTION_COLLECTIONS" in text


def test_an_error_shows_no_value_of_the_environment(tmp_path: Path):
    write(tmp_path, changed("path: letters", "path: ${SECRET}/x\n  kinds: 3"))
    assert "hunter2" not in report(tmp_path, {"SECRET": "s3://key:hunter2@archive"})


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """A valid collection after a few random edits of lines and characters."""
    text = draw(st.sampled_from([VALID, BY_RECORD]))
    alphabet = st.sampled_from(
        list(":-[]{}#&*!|>'\"%@`,? \n\t\\$~.0123456789abvxyz_\u00e9\u2028\x00")
    )
    pieces = st.one_of(
        st.text(alphabet, max_size=8),
        st.sampled_from(
            ["null", "true", "1e999", ".nan", "0b_", "2024-99-99", "<<: ", "- ", "!!int ", "[]"]
        ),
    )
    for _ in range(draw(st.integers(1, 4))):
        lines = text.split("\n")
        match draw(st.sampled_from(["insert", "delete", "swap", "value", "indent"])):
            case "insert":
                at = draw(st.integers(0, len(text)))
                text = text[:at] + draw(pieces) + text[at:]
            case "delete":
                at = draw(st.integers(0, len(text)))
                text = text[:at] + text[at + draw(st.integers(1, 20)) :]
            case "swap":
                one, other = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
                lines[one], lines[other] = lines[other], lines[one]
                text = "\n".join(lines)
            case "value":
                at = draw(st.integers(0, len(lines) - 1))
                lines[at] = lines[at].split(":")[0] + ": " + draw(pieces)
                text = "\n".join(lines)
            case "indent":
                at = draw(st.integers(0, len(lines) - 1))
                lines[at] = " " * draw(st.integers(0, 6)) + lines[at].lstrip()
                text = "\n".join(lines)
    return text


@settings(max_examples=400, deadline=None)
@given(text=damaged())
def test_a_damaged_file_loads_or_is_refused_in_whole_lines(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "prompt.txt").write_text("Find it.")
    file = folder / "one.yaml"
    file.write_bytes(text.encode())
    try:
        load_collections(folder, {"LETTERS": "/data"})
    except CollectionError as error:
        for line in str(error).split("\n"):
            number = re.match(rf"{re.escape(str(file))}:(\d+): \S.*\.", line)
            assert number, line
            assert 1 <= int(number[1]) <= text.count("\n") + 1 + text.count("\u2028")


@settings(max_examples=100, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_load_or_are_refused(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "one.yaml").write_bytes(content)
    with pytest.raises(CollectionError):
        load_collections(folder, {})
