"""Clinical documents to typed records through LLM batch APIs, each request sent once."""

__version__ = "0.1.0"
