"""What cannot be stored is refused in one line, whichever job and field it was typed into."""

from extraction_pipeline.orchestration.jobs import ALL_JOBS
from extraction_pipeline_tests.orchestration.installed import Installed, cause

VALUES: dict[str, object] = {
    "collections": ["notes"],
    "collection": "notes",
    "extraction_version": "v1",
    "document_hashes": ["f" * 64],
    "job_key": "notes.v1.1",
    "provider_job_id": "batch_1",
    "reason": "found by hand",
}
"""A value of each text that a job asks for."""

OPS = {job.name: job.nodes[0].definition for job in ALL_JOBS}


def fields_of(job: str) -> list[str]:
    names: dict[str, object] = getattr(OPS[job].get_config_field().config_type, "fields", {})
    return sorted(VALUES.keys() & names.keys())


def test_a_character_that_cannot_be_stored_is_refused(installed: Installed) -> None:
    for number, job in enumerate(OPS):
        bad = ("\0", "\ud800", "\x1b")[number % 3]
        fields = fields_of(job)
        assert fields, job
        # One field of each is enough to see that its job looks at them all.
        field = fields[number % len(fields)]
        good = VALUES[field]
        wrong = [f"{one}{bad}" for one in good] if isinstance(good, list) else f"{good}{bad}"
        config = {name: VALUES[name] for name in fields} | {field: wrong}
        told = cause(installed.run(job, OPS[job].name, config))
        assert told == (
            f"The setting {field} holds a character that cannot be stored (U+{ord(bad):04X}); "
            "nothing was done. Type it again without."
        ), job


def test_a_reason_may_have_several_lines_and_a_name_may_not(installed: Installed) -> None:
    chosen = {"job_key": "none", "reason": "first\n\tsecond"}
    assert "no batch job none" in cause(
        installed.run("cancel_batch", "cancel_submitted_batch", chosen)
    )
    chosen["job_key"] = "no\nne"
    assert "U+000A" in cause(installed.run("cancel_batch", "cancel_submitted_batch", chosen))


def test_an_empty_reason_is_refused_in_one_line(installed: Installed) -> None:
    told = cause(
        installed.run("cancel_batch", "cancel_submitted_batch", {"job_key": "a", "reason": ""})
    )
    assert told.startswith("The setting reason does not do: String should have at least 1")
