"""The contracts with providers over time: kept, compared with what was kept, checked."""
