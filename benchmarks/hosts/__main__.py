"""Several hosts, as network namespaces: throughput by the number of workers, and lost hosts.

    sudo python -m benchmarks.hosts                      1, 2, 4 workers, then 4 and 2 of them lost
    sudo python -m benchmarks.hosts --workers 4 --lose   the last of these alone

PostgreSQL, object store, broker, batch server, and the code server with the daemon have a host
each, and so has each worker: Dagster's Celery launcher hands them runs. All of it is gone at the
end. Needs Linux, root, iproute2 and redis-server, and `pip install -e '.[hosts]'`. Exit code 1
where something came twice, was lost, or a host that was cut off kept its locks for too long.
"""

import argparse
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from benchmarks.arguments import empty_folder, positive
from benchmarks.ending import ended_in_order
from benchmarks.hosts.network import enter, network
from benchmarks.hosts.services import Services
from benchmarks.hosts.trial import Trial, run_trial
from extraction_pipeline.reports.table import render_table

CLOSING_SECONDS = 60.0
"""For a trial that is broken off: nothing of its network may stay behind."""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--workers", type=positive, action="append", help="how many; may be repeated"
    )
    parser.add_argument("--documents", type=positive, default=2000)
    parser.add_argument("--parts", type=positive, default=8, help="runs that read the source")
    parser.add_argument(
        "--jobs", type=positive, default=8, help="batch jobs, each collected by a run"
    )
    parser.add_argument("--cores", type=float, default=0.25, help="of each worker host; 0: any")
    parser.add_argument("--lose", action="store_true", help="cut one off and kill one, of each")
    parser.add_argument(
        "--keep", type=empty_folder, help="an empty or new folder to keep each trial's logs in"
    )
    arguments = parser.parse_args()
    if os.geteuid() != 0 or which("ip") is None or which("redis-server") is None:
        parser.error("it needs root, and the programs ip and redis-server")
    plan = (
        [(count, arguments.lose) for count in arguments.workers]
        if arguments.workers
        else [(1, False), (2, False), (4, False), (4, True)]
    )
    began = time.monotonic()

    def tell(line: str) -> None:
        print(f"{time.monotonic() - began:7.1f} {line}", file=sys.stderr)  # noqa: T201

    trials = []
    for number, (count, losing) in enumerate(plan, 1):
        kept = arguments.keep and arguments.keep / f"{number}_workers_{count}"
        trials.append(_in_a_process(count, losing, kept, arguments, tell))
    return 0 if all(trials) else 1


def _in_a_process(
    workers: int,
    losing: bool,
    kept: Path | None,
    arguments: argparse.Namespace,
    tell: Callable[[str], None],
) -> bool:
    """A trial in a process of its own: it moves to a host of a network that is gone after it."""
    pid = os.fork()
    if pid == 0:
        # However it is told to end, nothing of the network stays behind.
        signal.set_wakeup_fd(-1)  # the command's own
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        code = 2
        try:
            code = 0 if _trial(workers, losing, kept, arguments, tell) else 1
        except SystemExit as ended:
            tell(str(ended))
        except KeyboardInterrupt:
            code = 130
        except Exception:  # noqa: BLE001 - this process ends with it, and the command says what
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == 130:
        sys.exit(code)
    return code == 0


def _trial(
    workers: int,
    losing: bool,
    kept: Path | None,
    arguments: argparse.Namespace,
    tell: Callable[[str], None],
) -> bool:
    with TemporaryDirectory(prefix="extraction-hosts-") as temporary:
        root = kept or Path(temporary)
        root.mkdir(exist_ok=True)
        root.chmod(0o755)
        with network(f"xp{os.getpid()}", arguments.cores or None) as made:
            services = Services(
                made, root, arguments.documents, arguments.parts, arguments.jobs, workers
            )
            enter(services.control)
            services.prepare()
            services.start()
            services.write_documents()
            services.start_workers()
            tell(f"{workers} workers and {arguments.documents} documents are there")
            trial = run_trial(services, tell, losing=losing)
    _report(trial, losing)
    return trial.holds


def _report(trial: Trial, losing: bool) -> None:
    rows: list[list[str | int | float | None]] = [
        [stage, trial.runs[stage], round(seconds, 1), round(trial.documents / max(seconds, 0.1))]
        for stage, seconds in trial.seconds.items()
    ]
    lost = ", one cut off for a minute and one killed" if losing else ""
    print(f"{trial.workers} workers{lost}")  # noqa: T201
    print(render_table(["stage", "runs", "seconds", "documents/s"], rows))  # noqa: T201
    for host, seconds in trial.freed:
        print(f"{host}: all its sessions and locks were freed after {seconds:.1f} s")  # noqa: T201
    counts = " ".join(f"{name.replace(' ', '_')}={count}" for name, count in trial.counts.items())
    print(f"{counts}\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    ended_in_order(main, CLOSING_SECONDS)
