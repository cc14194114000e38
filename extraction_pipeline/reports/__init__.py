"""What is shown to people and written to files: tables, single records, exports."""
