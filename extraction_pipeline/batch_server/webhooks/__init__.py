"""Announcing the ends of batches as the providers do: whom to tell (`targets`), in which words
(`events`), and how often to try (`sender`)."""
