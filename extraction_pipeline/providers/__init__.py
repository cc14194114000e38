"""Batch providers over plain HTTP: one interface (`base`), one module each, one HTTP client."""
