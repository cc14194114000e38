"""Dagster's storage in PostgreSQL, as `dagster.yaml` names it: Dagster's own tables, rows and
answers, with events written in bulk and connections kept. Nothing else writes to those tables."""
