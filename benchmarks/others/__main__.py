"""The same documents through other tools and through the pipeline, at the same batch server.

    python -m benchmarks.others                                # 1,000 documents, and every trouble
    python -m benchmarks.others --environments others --json   # keeps the tools' environments there
    python -m benchmarks.others --tools pipeline,llm-batch-py killed dropped

The tools are llm-batch-py, bespokelabs-curator and the LLMBatchOperator of Airflow. Each gets an
environment of its own, made from the pins beside this file when it is first needed; the package
index that pip knows is asked for them. One that cannot be installed is named, and left out.

The first table has the time of one program from its start to its end, the documents a second, its
processor time, and the peak of its memory; the others what came of six documents after each
trouble, counted as in `benchmarks.plain_script` by the batch server and by the tool's own output.

Fair settings, which all have alike: the same texts of 2 KB, instructions and pydantic model; the
model `rules-baseline`, answered at once; jobs of `--batch-size` requests (all in one, if it is not
given); a poll every `--poll` seconds; one program, with one job after the other; 4,096 tokens of
output; the tool's own defaults for all else. What is made once (the pipeline's database, Airflow's)
is made before the clock starts. Three things are changed in a tool's favour: the LLMBatchOperator
may poll as often as the others (as shipped, every 30 seconds at most often), runs in `DAG.test`
without scheduler and workers, and a killed llm-batch-py leaves a lock of one second (as shipped, an
hour). Exit code 1 if the pipeline paid for a request twice without need, has a second record, or
left a document without an end.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil

from benchmarks.arguments import positive
from benchmarks.ending import ended_in_order, temporary_folder
from benchmarks.others.environments import NotInstalled, Tool, python_of
from benchmarks.others.programs.settings import Fair
from benchmarks.others.subjects import Other, PreparedPipeline
from benchmarks.others.watching import Watch
from benchmarks.plain_script.outcomes import Outcome, batch_server, count, outcome, statistics
from benchmarks.plain_script.scenarios import DOCUMENTS, SCENARIOS, Scenario
from benchmarks.plain_script.subjects import Subject
from benchmarks.synthetic import write_documents

PIPELINE = "pipeline"
LEFT_OUT = {
    "timeout": "two of the tools' clients wait ten minutes, which cannot be set",
    "at_once": "Airflow's scheduler, which is not run here, sees to that",
}
"""Scenarios of the plain script that say nothing of these tools, and why."""
TROUBLES = tuple(one for one in SCENARIOS if one.name not in LEFT_OUT)
TIMED = "tool | s | documents/s | processor s | all, peak MB | largest process, peak MB"
SECONDS = 3600.0
"""For one program with all documents."""

SubjectOf = Callable[[Path, Path, str], Subject]


@dataclass(frozen=True)
class Speed:
    """What one program took for all documents."""

    documents: int
    seconds: float
    cpu_seconds: float
    together_mb: float
    largest_mb: float
    outcome: Outcome

    def cell(self) -> str:
        """For the table."""
        return (
            f"{self.seconds:.1f} | {self.documents / self.seconds:,.0f} | {self.cpu_seconds:.1f} | "
            f"{self.together_mb:.0f} | {self.largest_mb:.0f} | {self.outcome.cell()}"
        )


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [scenario.name for scenario in TROUBLES]
    parser.add_argument(
        "trouble", nargs="*", metavar="trouble", help=f"{', '.join(names)}; or none"
    )
    parser.add_argument("--documents", type=int, default=1000, help="0 leaves the first table out")
    parser.add_argument("--batch-size", type=positive, help="requests in a job; all, if not given")
    parser.add_argument("--poll", type=positive, default=1, help="seconds between two polls")
    parser.add_argument(
        "--environments", type=Path, help="folder that is kept; else a temporary one"
    )
    parser.add_argument("--tools", default=",".join([PIPELINE, *Tool]), help="some of them")
    parser.add_argument("--json", action="store_true", help="JSON lines instead of tables")
    asked = parser.parse_args()
    troubles = [] if asked.trouble == ["none"] else asked.trouble or names
    tools = asked.tools.split(",")
    for kind, wrong in (
        ("trouble", set(troubles) - set(names)),
        ("tool", set(tools) - {PIPELINE, *Tool}),
    ):
        if wrong:
            parser.error(f"there is no {kind} {', '.join(sorted(wrong))}")
    with temporary_folder("others") as temporary:
        batch_size = asked.batch_size or asked.documents or DOCUMENTS
        subjects = _subjects(tools, asked.environments or temporary, batch_size, asked.poll)
        holds = True
        if asked.documents:
            _head(asked.json, TIMED)
            for name, subject_of in subjects.items():
                speed = _speed(asked.documents, subject_of)
                _row(asked.json, name, "speed", speed)
        for scenario in TROUBLES:
            if scenario.name in troubles:
                _head(asked.json, scenario.what)
                for name, subject_of in subjects.items():
                    came = outcome(scenario, subject_of)
                    _row(asked.json, name, scenario.name, came)
                    holds = holds and (name != PIPELINE or _is_as_promised(came, scenario))
    sys.exit(0 if holds else 1)


def _subjects(
    tools: list[str], environments: Path, batch_size: int, poll: int
) -> dict[str, SubjectOf]:
    """How to begin with each tool; those that cannot be installed are named and left out."""
    found: dict[str, SubjectOf] = {}
    begin: Callable[[Path, Fair], Subject]
    for name in (PIPELINE, *Tool):
        if name not in tools:
            continue
        if isinstance(name, Tool):
            try:
                begin = partial(Other, name, python_of(name, environments))
            except NotInstalled as error:
                print(f"{name} is left out: {error}", file=sys.stderr)  # noqa: T201
                continue
        else:
            begin = PreparedPipeline
        found[name] = partial(_begin, begin, batch_size, poll)
    return found


def _begin(
    begin: Callable[[Path, Fair], Subject],
    batch_size: int,
    poll: int,
    folder: Path,
    documents: Path,
    base_url: str,
) -> Subject:
    settings = Fair(
        documents=documents,
        base_url=base_url,
        output=folder / "told.jsonl",
        state=folder / "state",
        batch_size=batch_size,
        poll_seconds=poll,
    )
    return begin(folder, settings)


def _speed(documents: int, subject_of: SubjectOf) -> Speed:
    with temporary_folder("others") as folder:
        write_documents(folder / "documents", 0, documents)
        with batch_server(folder) as url:
            subject = subject_of(folder, folder / "documents", f"{url}/v1")
            started = time.perf_counter()
            program = subject.start()
            with Watch(psutil.Process(program.pid), folder) as watch:
                program.wait(SECONDS)
                seconds = time.perf_counter() - started
            came = count(documents, statistics(url), subject.records(), subject.explained())
            return Speed(
                documents,
                seconds,
                watch.cpu_seconds,
                watch.together_mb,
                watch.largest_mb,
                came,
            )


def _is_as_promised(came: Outcome, scenario: Scenario) -> bool:
    twice = came.paid_again and not scenario.pays_again
    return not (twice or came.second_records or came.lost)


def _head(as_json: bool, title: str) -> None:
    if not as_json:
        columns = f"{title} | jobs | paid | records | lost"
        _print(f"\n| {columns} |\n|---|" + "---:|" * columns.count(" | "))


def _row(as_json: bool, tool: str, what: str, measured: Speed | Outcome) -> None:
    if as_json:
        _print(json.dumps({"tool": tool, "what": what, **asdict(measured)}))
    else:
        _print(f"| {tool} | {measured.cell()} |")


def _print(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main)
