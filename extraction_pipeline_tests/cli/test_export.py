"""`extraction-pipeline export`: every format gives back the same, and only to its owner."""

import json
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from extraction_pipeline.cli.group import commands
from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.reports.export import Export, write_export
from extraction_pipeline.reports.export_format import ExportFormat
from extraction_pipeline_tests.batch_server.process import ServerProcess
from extraction_pipeline_tests.conftest import Workplace
from extraction_pipeline_tests.faults.proxy import Proxy, running_proxy
from extraction_pipeline_tests.faults.result_rows import both, said
from extraction_pipeline_tests.lifecycle.driving import Driven
from extraction_pipeline_tests.lifecycle.model_answers import NOTHING_STATED

COURSE = 'N/A, "said"\nßé'
ANSWERS = (
    NOTHING_STATED,
    NOTHING_STATED
    | {"chief_complaint": "", "hospital_course": COURSE, "disposition": "NA", "allergies": []},
)


@pytest.fixture
def proxy(server: ServerProcess) -> Iterator[Proxy]:
    with running_proxy(server.base_url) as running:
        yield running


@pytest.fixture
def one(workplace: Workplace, server: ServerProcess, proxy: Proxy) -> Driven:
    """Two published notes: one states nothing at all, one leaves a place blank."""
    workplace.write(2)
    proxy.plan_results(both(*(said(at, json.dumps(answer)) for at, answer in enumerate(ANSWERS))))
    driven = Driven(workplace.open(proxy.base_url), server)
    driven.finished(*driven.submitted())
    return driven


def exported(path: Path, *words: str) -> Path:
    done = CliRunner().invoke(
        commands, ["export", "--collection", "notes", "--output", str(path), *words]
    )
    assert done.exit_code == 0, done.exception
    return path


def by_hash(rows: Iterable[Mapping[Any, Any]]) -> dict[str, Mapping[Any, Any]]:
    return {row["document_hash"]: row for row in rows}


@pytest.mark.usefixtures("one")
def test_every_format_gives_back_the_same(tmp_path: Path) -> None:
    lines = exported(tmp_path / "notes.jsonl").read_bytes().splitlines()
    told = [orjson.loads(line) for line in lines]
    nothing, blank = sorted(told, key=lambda row: row["chief_complaint"] is not None)
    assert nothing["chief_complaint"] is None
    assert (blank["chief_complaint"], blank["hospital_course"]) == ("", COURSE)
    assert blank["allergies"] == [], "a list, not the text of one"
    assert list(blank)[-12:] == list(NOTHING_STATED), "fields in the order of the schema"
    parquet = pq.read_table(exported(tmp_path / "notes.parquet"))
    as_readme_says = pd.read_csv(
        exported(tmp_path / "notes.csv"), keep_default_na=False, na_values=["\\N"]
    ).astype(object)
    for rows in (
        parquet.to_pylist(),
        as_readme_says.where(as_readme_says.notna(), None).to_dict("records"),
    ):
        for document, row in by_hash(rows).items():
            expected = by_hash(told)[document]
            assert list(row) == list(expected)
            for name in NOTHING_STATED:
                value = expected[name]
                same = json.dumps(value) if isinstance(value, list | dict) else value
                assert row[name] == same, name
    assert "path" not in nothing, "file names are shown only where the YAML says so"


@pytest.mark.usefixtures("one")
def test_the_types_of_parquet_do_not_depend_on_what_the_records_hold(tmp_path: Path) -> None:
    schema = pq.read_schema(exported(tmp_path / "notes.parquet"))
    assert pa.null() not in schema.types
    assert {schema.field(name).type for name in NOTHING_STATED} == {pa.string()}
    assert schema.field("evidence_found").type == pa.int64()
    assert schema.field("published_at").type == pa.timestamp("us", tz="UTC")


def test_a_version_that_was_never_used_gives_a_file_with_columns_and_no_rows(
    workplace: Workplace, tmp_path: Path
) -> None:
    for ending, columns in (
        ("parquet", lambda path: pq.read_table(path).column_names),
        ("csv", lambda path: list(pd.read_csv(path).columns)),
    ):
        assert "chief_complaint" in columns(exported(tmp_path / f"notes.{ending}"))
    assert exported(tmp_path / "notes.jsonl").read_bytes() == b""


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_a_file_is_its_owners_alone_and_is_replaced_in_one_step(
    tmp_path: Path, ending: str
) -> None:
    path = tmp_path / "out" / f"notes.{ending}"
    path.parent.mkdir()
    path.write_text("older")
    path.chmod(0o644)
    with path.open() as before:
        exported(path)
        assert before.read() == "older", "a reader of the old file keeps it whole"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.usefixtures("workplace")
def test_what_cannot_be_written_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "notes.csv" / "in the way").mkdir(parents=True)
    done = CliRunner().invoke(
        commands, ["export", "--collection", "notes", "--output", f"{tmp_path}/x.csv"]
    )
    assert done.exit_code == 0
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_export(
            Export({"properties": {}, "required": []}, with_paths=False),
            [],
            tmp_path / "notes.csv",
            ExportFormat.CSV,
        )
    assert not list(tmp_path.glob(".*partial"))


def test_records_of_an_older_schema_are_shown_in_its_words(one: Driven, tmp_path: Path) -> None:
    """And a field that is called like a column of provenance does not hide it."""
    one.execute(
        """
        UPDATE extraction.extraction_versions SET recipe = jsonb_set(recipe, '{json_schema}',
          '{"required": ["model", "count", "parts"], "properties": {"model": {"type": "string"},
            "count": {"type": "integer"}, "parts": {"type": "array", "items": {"$ref":
            "#/$defs/Part"}}}, "$defs": {"Part": {"required": ["zeta", "a"], "properties":
            {"a": {"type": "string"}, "zeta": {"type": "string"}}}}}')
        """
    )
    one.execute(
        "UPDATE extraction.extractions SET body ="
        """ '{"model": "pump", "count": 3, "parts": [{"a": "x", "zeta": "y"}]}'"""
    )
    path = exported(tmp_path / "notes.jsonl")
    row = orjson.loads(path.read_bytes().splitlines()[0])
    assert (row["model"], row["record_model"], row["count"]) == ("rules-baseline", "pump", 3)
    assert list(row["parts"][0]) == ["zeta", "a"]
    schema = pq.read_schema(exported(tmp_path / "notes.parquet"))
    assert schema.field("count").type == pa.int64()
