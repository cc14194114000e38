"""`python -m extraction_pipeline.cli` is the console script."""

from extraction_pipeline.cli import main

main()
