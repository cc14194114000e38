"""The check of an input file, line by line, before a batch of it starts.

OpenAI checks after accepting the batch: one bad line fails all of it, with the line's number. Its
codes are documented only in part; these are the ones that users and compatible servers report.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from extraction_pipeline.batch_server.records import InputFault, InputReport, LinePlace

MOST_FAULTS = 100


class InputLine(BaseModel):
    """One request of a batch, as far as it has to be known to run it."""

    model_config = ConfigDict(hide_input_in_errors=True, strict=True)

    custom_id: Annotated[str, Field(min_length=1)]
    method: str
    url: str
    body: dict[str, Any] = Field(repr=False)


def check_input(
    lines: Iterable[bytes], endpoint: str, most_requests: int, accept: Callable[[LinePlace], None]
) -> InputReport:
    """Check every line and hand the place of each good one to `accept`, in order.

    Blank lines are passed over. The check ends after `MOST_FAULTS` faults.
    """
    report = InputReport()
    seen: set[str] = set()
    offset = 0
    for number, raw in enumerate(lines, start=1):
        start, offset = offset, offset + len(raw)
        if not raw.strip():
            continue
        report.total += 1
        if report.total > most_requests:
            message = f"The file holds more than {most_requests} requests."
            report.faults.append(InputFault("too_many_tasks", message))
            break
        line, faults = _check_line(raw, number, endpoint, report, seen)
        report.faults.extend(faults)
        if line is not None:
            seen.add(line.custom_id)
            accept(LinePlace(report.total - 1, line.custom_id, start, len(raw)))
        if len(report.faults) >= MOST_FAULTS:
            break
    if report.total == 0:
        report.faults.append(InputFault("empty_file", "The file holds no request."))
    return report


def _check_line(
    raw: bytes, number: int, endpoint: str, report: InputReport, seen: set[str]
) -> tuple[InputLine | None, list[InputFault]]:
    try:
        line = read_line(raw)
    except orjson.JSONDecodeError:
        return None, [InputFault("invalid_json_line", "The line is not valid JSON.", None, number)]
    except ValidationError as error:
        return None, list(_field_faults(error, number))
    return line, list(_content_faults(line, number, endpoint, report, seen))


def read_line(raw: bytes) -> InputLine:
    """One request. Raises `JSONDecodeError` or pydantic's `ValidationError`."""
    return InputLine.model_validate(orjson.loads(raw))


def _field_faults(error: ValidationError, number: int) -> Iterator[InputFault]:
    for fault in error.errors(include_input=False, include_url=False):
        name = ".".join(str(part) for part in fault["loc"]) or None
        if fault["type"] == "missing":
            message = f"The request lacks {name}."
            yield InputFault("missing_required_parameter", message, name, number)
        else:
            message = f"{name or 'The line'}: {fault['msg']}."
            yield InputFault("invalid_value", message, name, number)


def _content_faults(
    line: InputLine, number: int, endpoint: str, report: InputReport, seen: set[str]
) -> Iterator[InputFault]:
    if line.method != "POST":
        yield InputFault("invalid_method", "The method has to be POST.", "method", number)
    if line.url != endpoint:
        message = f"The url has to be the batch's endpoint, {endpoint}."
        yield InputFault("invalid_url", message, "url", number)
    if line.custom_id in seen:
        message = "The custom_id was used by an earlier line."
        yield InputFault("duplicate_custom_id", message, "custom_id", number)
    model = line.body.get("model")
    if not isinstance(model, str) or not model:
        message = "The request lacks body.model."
        yield InputFault("missing_required_parameter", message, "body.model", number)
    elif report.model is None:
        report.model = model
    elif model != report.model:
        message = "All requests of a batch go to one model."
        yield InputFault("mismatched_model", message, "body.model", number)
