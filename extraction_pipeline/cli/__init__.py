"""The command line: `extraction-pipeline COMMAND`. Light, so that Ctrl-C is heard from early on."""

import sys

from extraction_pipeline.cli.signals import end_at_once


def main() -> None:
    """Entry of the console script."""
    end_at_once()
    from extraction_pipeline.cli.group import run_command

    sys.exit(run_command())
