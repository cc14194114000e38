"""`python -m extraction_pipeline.batch_server`: the server as a process of its own."""

import sys

from extraction_pipeline.batch_server.command import batch_server
from extraction_pipeline.errors import ExtractionPipelineError

if __name__ == "__main__":
    try:
        batch_server()
    except ExtractionPipelineError as error:
        sys.exit(f"Error: {error}")
