"""The way of a document: register, submit, resolve, poll, collect, publish. No Dagster here."""
