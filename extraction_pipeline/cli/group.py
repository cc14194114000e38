"""The commands together, and what the outcome of one is to a shell.

A command's module declares its options; what it does is imported when it is called, so that
`--help` and a slip in the options are answered at once.
"""

import os

import click

from extraction_pipeline import __version__
from extraction_pipeline.batch_server.command import batch_server
from extraction_pipeline.cli.contract import contract
from extraction_pipeline.cli.demo import demo
from extraction_pipeline.cli.dev import dev
from extraction_pipeline.cli.export import export
from extraction_pipeline.cli.migrate import migrate
from extraction_pipeline.cli.program import with_program
from extraction_pipeline.cli.run import run
from extraction_pipeline.cli.signals import MESSAGE, end_at_once, exit_code, interrupted
from extraction_pipeline.cli.status import status
from extraction_pipeline.cli.webhooks import webhooks
from extraction_pipeline.errors import DISK_FULL, ExtractionPipelineError

FOR_THIS_USER_ALONE = 0o077
"""Whatever a command makes, and what it starts: documents, records and logs of patients."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="extraction-pipeline")
def commands() -> None:
    """Clinical documents to typed records through LLM batch APIs, each request sent once.

    \b
    Exit codes: 0 done; 1 documents are left waiting, a job could not be sent, or a run failed;
    2 a wrong command, setting or file; 3 the database; 4 a source or the store; 5 a provider;
    130 interrupted (143 by SIGTERM, 129 by SIGHUP).

    \b
    Example:
      extraction-pipeline demo
    """


for command in (demo, dev, run, status, export, contract, migrate, webhooks, batch_server):
    commands.add_command(command)


def run_command() -> int:
    """Run the command that was typed; its exit code. What went wrong is told in one line."""
    os.umask(FOR_THIS_USER_ALONE)
    try:
        return int(commands.main(standalone_mode=False) or 0)
    except SystemExit as ended:
        return int(ended.code or 0)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _interrupted()
    except BaseException as error:
        if interrupted():  # it broke off something that then failed in its own way
            return _interrupted()
        told = _told(error)
        if told is None:
            raise
        return told
    finally:
        end_at_once()  # the interpreter's own end is nothing to raise an exception in


def _interrupted() -> int:
    end_at_once()
    click.echo(MESSAGE, err=True)
    return exit_code()


def _told(error: BaseException) -> int | None:
    """Tell an error in a line; its exit code. `None` for one that is a fault of this program."""
    if isinstance(error, ExtractionPipelineError):
        click.echo(f"Error: {with_program(str(error))}", err=True)
        return error.exit_code
    # Not above: most commands end without an error, and some without a database.
    from extraction_pipeline.ledger.lost_database import chain_of, lost_database

    lost = lost_database(error)
    if lost is not None:
        return _told(lost)
    for one in chain_of(error):
        if isinstance(one, OSError) and one.errno in DISK_FULL:
            # Without the file: its name can be a patient's.
            click.echo(f"Error: A file could not be written: {one.strerror}.", err=True)
            return 2
    return None
