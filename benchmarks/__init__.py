"""Measurements, each a command of its own. None is a test."""
