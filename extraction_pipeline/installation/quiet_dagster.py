"""`python -m extraction_pipeline.installation.quiet_dagster …`: Dagster's command line, less two
warnings that tell who typed `extraction-pipeline dev` nothing.
"""

import logging
import warnings

from dagster._cli import main

SUPERSEDED = "Function `dev_command` is superseded"
OTHER_FILE = "Found a dagster instance configuration value"
"""In a clone the project's own instance file lies in the current folder; the home has its copy."""


def _worth_telling(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(OTHER_FILE)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message=SUPERSEDED)
    logging.getLogger("dagster").addFilter(_worth_telling)
    main()  # type: ignore[no-untyped-call]
