"""Dagster: assets, jobs, sensors, schedules, checks, and the writing of their records."""
