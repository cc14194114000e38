"""What a stored record names as its content is read from its JSON as Dagster would read it."""

import json
from pathlib import Path

import pytest
from dagster import AssetKey, AssetMaterialization, EventLogEntry, MetadataValue
from dagster._core.definitions.metadata import RawMetadataValue
from dagster._core.events import DagsterEvent, StepMaterializationData
from dagster._serdes import serialize_value

from extraction_pipeline.orchestration import recorded
from extraction_pipeline.orchestration.recorded import named_in

CONTENT = "a" * 64


def stored(metadata: dict[str, RawMetadataValue]) -> str:
    """A materialization as Dagster's storage keeps it."""
    record = AssetMaterialization(AssetKey(["notes", "documents"]), "p", metadata=metadata)
    event = DagsterEvent(
        event_type_value="ASSET_MATERIALIZATION",
        job_name="job",
        event_specific_data=StepMaterializationData(record),
    )
    return serialize_value(EventLogEntry(None, 10, "", "run", 1.0, dagster_event=event))


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (CONTENT, CONTENT),
        ("", ""),
        (7, "7"),
        (MetadataValue.url("https://example.org"), "https://example.org"),
        (MetadataValue.path(Path("a") / "b"), "a/b"),
        (MetadataValue.json({"content_hash": CONTENT}), "{'content_hash': '" + CONTENT + "'}"),
    ],
)
def test_whatever_kind_of_metadata_names_it(value: RawMetadataValue, named: str) -> None:
    assert (
        named_in(stored({"other": 1, "content_hash": value, "last": "b"}), "content_hash") == named
    )
    assert named_in(stored({"other": value}), "content_hash") is None


def test_a_form_that_dagster_alone_knows_is_read_by_dagster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    event = stored({"content_hash": CONTENT})
    older = json.loads(event)
    # As stored by releases before 1.0, which this one still reads.
    older["dagster_event"]["event_specific_data"]["materialization"].pop("metadata_entries")
    assert named_in(json.dumps(older), "content_hash") is None
    # The usual form needs nothing of Dagster's.
    monkeypatch.setattr(recorded, "deserialize_value", None)
    assert named_in(event, "content_hash") == CONTENT
