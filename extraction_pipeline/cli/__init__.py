"""The command line: `extraction-pipeline COMMAND`."""

import sys

import click

from extraction_pipeline import __version__
from extraction_pipeline.batch_server.command import batch_server
from extraction_pipeline.cli.contract import contract
from extraction_pipeline.cli.demo import demo
from extraction_pipeline.cli.dev import dev
from extraction_pipeline.cli.export import export
from extraction_pipeline.cli.migrate import migrate
from extraction_pipeline.cli.run import run
from extraction_pipeline.cli.status import status
from extraction_pipeline.errors import ExtractionPipelineError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="extraction-pipeline")
def commands() -> None:
    """Clinical documents to typed records through LLM batch APIs, each request sent once.

    \b
    Exit codes: 0 done; 1 documents are left waiting, a job could not be sent, or a run failed;
    2 a wrong command, setting or file; 3 the database; 4 a source or the store; 5 a provider;
    130 interrupted.

    \b
    Example:
      extraction-pipeline demo
    """


for command in (demo, dev, run, status, export, contract, migrate, batch_server):
    commands.add_command(command)


def main() -> None:
    """Entry of the console script."""
    try:
        code = commands.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted. What a provider has is kept and found again.", err=True)
        sys.exit(130)
    except ExtractionPipelineError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(code or 0)
