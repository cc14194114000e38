"""What runs on one machine without being set up: database, batch server, Dagster's home."""
