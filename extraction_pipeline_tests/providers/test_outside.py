"""The life of a job at a service without an API: two files in a folder, on a disk and elsewhere."""

import errno
import json
import os
import stat
import uuid
from datetime import UTC, datetime
from pathlib import Path

import fsspec
import pytest

from extraction_pipeline.errors import ConfigurationError
from extraction_pipeline.providers import outside_results
from extraction_pipeline.providers.base import (
    AnswerOutcome,
    FailureKind,
    JobPhase,
    JobStatus,
    SearchVerdict,
    Sought,
    Submission,
)
from extraction_pipeline.providers.errors import CallFailed, CallRefused, OutcomeUnknown
from extraction_pipeline.providers.folder_endpoint import FolderEndpoint
from extraction_pipeline.providers.limits import AccountLimits
from extraction_pipeline.providers.outside import OutsideProvider, build_outside
from extraction_pipeline_tests.providers.outside_service import OutsideService, delivery
from extraction_pipeline_tests.providers.sample_request import DOCUMENT_HASH, sample_request

KEY = "notes-2.v1_b.0123456789abcdef"
WHOLE = delivery([{"document_hash": DOCUMENT_HASH, "record": {"title": "\u2028"}}])


@pytest.fixture
def service(tmp_path: Path) -> OutsideService:
    folder = tmp_path / "shared"
    folder.mkdir()
    return OutsideService(folder)


@pytest.fixture
def provider(service: OutsideService) -> OutsideProvider:
    return build_outside(FolderEndpoint(str(service.folder)))


@pytest.fixture
def submission(tmp_path: Path, provider: OutsideProvider) -> Submission:
    payload = tmp_path / "payload"
    payload.write_bytes(provider.encode_request(sample_request()) + b"\n")
    return Submission(KEY, "ward-bureau", payload=payload)


def sought(job_key: str = KEY) -> Sought:
    now = datetime.now(UTC)
    return Sought(job_key, now, now, 1, "0123456789abcdef-")


def results(provider: OutsideProvider, status: JobStatus) -> bytes:
    (reference,) = status.results
    with provider.download(reference) as chunks:
        return b"".join(chunks)


def test_a_job_from_submission_to_results(provider, service, submission):
    assert provider.find(sought()).verdict is SearchVerdict.REPEATABLE
    receipt = provider.submit(submission)
    assert receipt.job_id == KEY
    assert service.jobs() == [KEY]
    (request,) = service.requests(KEY)
    assert request["document_hash"] == DOCUMENT_HASH
    (found,) = provider.find(sought()).found
    assert found.job_id == KEY
    assert provider.status(KEY).phase is JobPhase.PENDING
    service.place(KEY, WHOLE)
    status = provider.status(KEY)
    assert (status.phase, status.counts.completed) == (JobPhase.ENDED, 1)
    (line,) = results(provider, status).splitlines()
    assert provider.decode_result(line).outcome is AnswerOutcome.COMPLETED


def test_the_same_key_again_is_the_same_job(provider, service, submission):
    provider.submit(submission)
    before = (service.outbox / f"{KEY}.jsonl").stat()
    submission.payload.write_bytes(b"something else")
    assert provider.submit(submission).job_id == KEY
    after = (service.outbox / f"{KEY}.jsonl").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    service.place(KEY, WHOLE)
    (service.outbox / f"{KEY}.jsonl").unlink()
    provider.submit(submission)
    assert service.jobs() == []
    assert provider.find(sought()).verdict is SearchVerdict.FOUND


def test_requests_are_for_the_owner_alone_and_nothing_else_lies_about(
    provider, service, submission
):
    provider.submit(submission)
    assert [path.name for path in service.outbox.iterdir()] == [f"{KEY}.jsonl"]
    assert [path.stat().st_size for path in (service.folder / "sent").iterdir()] == [0]
    for path, mode in (
        (service.outbox, 0o700),
        (service.inbox, 0o700),
        (service.folder / "sent", 0o700),
        (service.outbox / f"{KEY}.jsonl", 0o600),
    ):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_share_without_links_gets_its_file_in_one_step_too(
    provider, service, submission, monkeypatch
):
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "link", no_links)
    provider.submit(submission)
    assert [path.name for path in service.outbox.iterdir()] == [f"{KEY}.jsonl"]
    submission.payload.write_bytes(b"something else")
    provider.submit(submission)
    assert len(service.requests(KEY)) == 1


def test_what_a_killed_process_left_half_written_is_taken_away(provider, service, submission):
    service.outbox.mkdir()
    half = service.outbox / f".{KEY}.jsonl.{uuid.uuid4().hex}.part"
    other = service.outbox / f".other.jsonl.{uuid.uuid4().hex}.part"
    for path in (half, other):
        path.write_bytes(b"{")
    assert provider.find(sought()).verdict is SearchVerdict.REPEATABLE
    assert not half.exists()
    half.write_bytes(b"{")
    provider.submit(submission)
    assert (half.exists(), other.exists()) == (False, True)


def test_a_step_of_unknown_end_is_said_to_be_unknown(provider, service, submission, monkeypatch):
    """The share breaks in the one moment that makes the job."""

    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "input/output error", "/shared/Jane.txt")

    for name in ("link", "replace", "rename"):
        monkeypatch.setattr(os, name, broken)
    with pytest.raises(OutcomeUnknown, match="input/output error") as caught:
        provider.submit(submission)
    assert "Jane" not in str(caught.value)
    assert provider.find(sought()).verdict is SearchVerdict.REPEATABLE


def test_a_service_may_take_the_requests_away(provider, service, submission):
    provider.submit(submission)
    (service.outbox / f"{KEY}.jsonl").rename(service.folder / "taken.jsonl")
    status = provider.status(KEY)
    assert (status.phase, status.provider_state) == (JobPhase.PENDING, "taken")
    service.place(KEY, WHOLE)
    assert provider.find(sought()).verdict is SearchVerdict.FOUND
    assert provider.status(KEY).phase is JobPhase.ENDED


def test_whether_they_were_taken_or_never_there_is_not_guessed(
    provider, service, submission, monkeypatch
):
    """Dead between the mark and the requests looks as if the service had been quick."""
    link = os.link

    def only_marks(source: Path, target: Path) -> None:
        if target.suffix == ".jsonl":
            raise KeyboardInterrupt
        link(source, target)

    monkeypatch.setattr(os, "link", only_marks)
    with pytest.raises(KeyboardInterrupt):
        provider.submit(submission)
    monkeypatch.undo()
    assert provider.find(sought()).verdict is SearchVerdict.UNCERTAIN
    with pytest.raises(OutcomeUnknown):
        provider.submit(submission)
    assert service.jobs() == []
    (service.folder / "sent" / KEY).unlink()  # a person has asked the service
    assert provider.find(sought()).verdict is SearchVerdict.REPEATABLE
    provider.submit(submission)
    assert service.jobs() == [KEY]


@pytest.mark.parametrize(
    "content",
    [
        *(WHOLE[:length] for length in (0, 1, 50, len(WHOLE) - 26, len(WHOLE) - 3)),
        WHOLE + WHOLE,
        WHOLE + WHOLE.replace(b": 1}", b": 3}"),
        WHOLE[:10] + b"\0" * 20 + WHOLE[30:],
        WHOLE.replace(b": 1}", b": 2}"),
        WHOLE.replace(b": 1}", b': "1"}'),
        WHOLE.replace(b": 1}", b": null}"),
        WHOLE.replace(b": 1}", b": true}"),
        WHOLE.replace(b": 1}", b": 1.0}"),
        WHOLE.splitlines(keepends=True)[0],
        b"\0" * len(WHOLE),
    ],
)
def test_a_file_that_is_not_whole_is_never_taken(provider, service, submission, content):
    provider.submit(submission)
    service.place(KEY, WHOLE)
    ended = provider.status(KEY)
    service.place(KEY, content)
    with pytest.raises(CallFailed, match="not there whole"):
        results(provider, ended)
    status = provider.status(KEY)
    assert (status.phase, status.provider_state) == (JobPhase.PENDING, "results_not_whole")
    service.place(KEY, WHOLE)
    assert provider.status(KEY).phase is JobPhase.ENDED


@pytest.mark.parametrize(
    "content",
    [
        WHOLE.replace(b"\n", b"\r\n"),
        WHOLE.replace(b"\n", b"\n\n"),
        WHOLE.rstrip(),
        b"\xef\xbb\xbf" + WHOLE,
        WHOLE.replace(b"{", b" { "),
    ],
)
def test_other_ways_to_write_the_same_are_the_same(provider, service, submission, content):
    provider.submit(submission)
    service.place(KEY, content)
    (line,) = results(provider, provider.status(KEY)).splitlines()
    assert json.loads(provider.decode_result(line).text or "") == {"title": "\u2028"}


def test_every_cut_of_a_longer_file_is_pending(provider, service, submission):
    provider.submit(submission)
    content = delivery({"document_hash": DOCUMENT_HASH, "error": f"e{n}"} for n in range(12))
    for length in range(len(content) - 1):
        service.place(KEY, content[:length])
        assert provider.status(KEY).phase is JobPhase.PENDING, length


def test_a_line_that_is_longer_than_any_keeps_its_file_back(
    provider, service, submission, monkeypatch
):
    provider.submit(submission)
    service.place(KEY, WHOLE)
    longest = max(map(len, WHOLE.splitlines(keepends=True)))
    monkeypatch.setattr(outside_results, "LONGEST_RESULT_LINE", longest)
    assert provider.status(KEY).phase is JobPhase.ENDED
    monkeypatch.setattr(outside_results, "LONGEST_RESULT_LINE", longest - 1)
    assert provider.status(KEY).provider_state == "results_not_whole"


def test_no_results_at_all_is_a_whole_file(provider, service, submission):
    provider.submit(submission)
    service.place(KEY, delivery([]))
    status = provider.status(KEY)
    assert (status.phase, status.counts.completed) == (JobPhase.ENDED, 0)
    assert results(provider, status) == b""


def test_a_pipe_in_the_inbox_is_not_waited_for(provider, service, submission):
    provider.submit(submission)
    os.mkfifo(service.inbox / f"{KEY}.jsonl")
    assert provider.status(KEY).phase is JobPhase.PENDING


def test_a_link_in_the_inbox_leads_nowhere(provider, service, submission, tmp_path):
    provider.submit(submission)
    service.place(KEY, WHOLE)
    ended = provider.status(KEY)
    place = service.inbox / f"{KEY}.jsonl"
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    assert provider.status(KEY).phase is JobPhase.PENDING
    with pytest.raises(CallFailed):
        results(provider, ended)


def test_a_job_that_is_not_there_is_refused(provider):
    for call in (provider.status, provider.cancel):
        with pytest.raises(CallRefused, match="has no file in the shared folder") as caught:
            call("notes.v1.none")
        assert (caught.value.kind, caught.value.http_status) == (FailureKind.REJECTED, 404)
    for key in ("../../etc/passwd", "a/b", ""):
        with pytest.raises(ValueError, match="a job key consists of"):
            provider.status(key)


def test_a_cancelled_job_takes_its_requests_back_and_is_not_sent_again(
    provider, service, submission
):
    provider.submit(submission)
    assert provider.cancel(KEY).phase is JobPhase.CANCELLED
    assert service.jobs() == []
    provider.submit(submission)
    assert service.jobs() == []
    assert provider.find(sought()).verdict is SearchVerdict.FOUND
    assert provider.cancel(KEY).phase is JobPhase.CANCELLED
    service.place(KEY, WHOLE)
    assert provider.status(KEY).phase is JobPhase.ENDED, "what was done is paid for"


def test_results_that_are_there_cannot_be_cancelled(provider, service, submission):
    provider.submit(submission)
    service.place(KEY, WHOLE)
    assert provider.cancel(KEY).phase is JobPhase.ENDED
    assert service.jobs() == [KEY]


def test_what_is_collected_can_be_deleted(provider, service, submission):
    provider.submit(submission)
    other = service.place("notes.v1.other", WHOLE)
    service.place(KEY, WHOLE)
    for _ in range(2):
        provider.clean_up(KEY, (KEY,))
        assert [path for path in service.folder.rglob("*") if path.is_file()] == [other]


def test_limits_of_the_account_are_kept(service):
    limits = AccountLimits(requests_per_job=7)
    assert build_outside(FolderEndpoint(str(service.folder), limits)).limits.requests_per_job == 7


def test_a_folder_that_is_not_there_is_one_line_and_never_made(tmp_path, submission):
    provider = build_outside(FolderEndpoint(str(tmp_path / "not_mounted")))
    for call in (
        lambda: provider.submit(submission),
        lambda: provider.find(sought()),
        lambda: provider.status(KEY),
        lambda: provider.cancel(KEY),
    ):
        with pytest.raises(CallFailed, match=r"folder is not there\. Mount it.*OUTSIDE_FOLDER"):
            call()
    assert not (tmp_path / "not_mounted").exists()


def test_a_folder_that_cannot_be_used_is_one_line_without_a_path(provider, service, submission):
    service.outbox.write_bytes(b"a file of this name")
    with pytest.raises(CallFailed, match="cannot be used: ") as caught:
        provider.submit(submission)
    assert str(service.folder) not in str(caught.value)


@pytest.mark.parametrize(
    ("protocol", "cause"), [("nosuch", "Protocol not known"), ("lacking", "Install lacking-driver")]
)
def test_a_url_without_its_driver_is_one_line(protocol, cause):
    fsspec.register_implementation(
        "lacking", "no_such_module.FileSystem", clobber=True, errtxt="Install lacking-driver"
    )
    provider = build_outside(FolderEndpoint(f"{protocol}://bucket/x"))
    with pytest.raises(CallFailed, match=rf"OUTSIDE_FOLDER cannot be used: {cause}") as caught:
        provider.status(KEY)
    assert "\n" not in str(caught.value)
    assert provider.base_url == f"{protocol}://bucket/x"


def test_a_password_in_the_url_is_refused_and_not_shown():
    with pytest.raises(ConfigurationError, match="password") as caught:
        FolderEndpoint("sftp://me:secret@host/shared")
    assert "secret" not in str(caught.value)
    assert FolderEndpoint("sftp://me@host/shared/").folder == "sftp://me@host/shared"


def test_the_same_life_in_a_folder_that_is_no_disk(submission):
    memory = fsspec.filesystem("memory")
    root = f"/shared-{uuid.uuid4().hex}"
    provider = build_outside(FolderEndpoint(f"memory:/{root}"))
    with pytest.raises(CallFailed, match="folder is not there"):
        provider.submit(submission)
    memory.makedirs(f"{root}/outbox")
    memory.pipe_file(f"{root}/outbox/.{KEY}.jsonl.0.part", b"{")
    provider.submit(submission)
    provider.submit(submission)
    names = [path.rpartition("/")[2] for path in memory.ls(f"{root}/outbox", detail=False)]
    assert names == [f"{KEY}.jsonl"]
    assert memory.cat_file(f"{root}/outbox/{KEY}.jsonl") == submission.payload.read_bytes()
    assert provider.find(sought()).verdict is SearchVerdict.FOUND
    memory.pipe_file(f"{root}/inbox/{KEY}.jsonl", WHOLE[:-3])
    assert provider.status(KEY).phase is JobPhase.PENDING
    assert provider.cancel(KEY).phase is JobPhase.CANCELLED
    assert not memory.exists(f"{root}/outbox/{KEY}.jsonl")
    memory.pipe_file(f"{root}/inbox/{KEY}.jsonl", WHOLE)
    assert results(provider, provider.status(KEY)) == WHOLE.splitlines(keepends=True)[0]
    memory.rm(root, recursive=True)
