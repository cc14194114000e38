"""The same documents through other tools and through the pipeline: `python -m benchmarks.others`"""
