"""Campaigns: the real thing in processes that are killed, and the counts of what came of it."""
