"""Faults on demand, between the pipeline and a real batch server."""
