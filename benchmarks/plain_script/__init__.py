"""The same troubles for a plain script and for the pipeline: `python -m benchmarks.plain_script`"""
