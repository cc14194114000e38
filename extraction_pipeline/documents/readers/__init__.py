"""One file for each format, and what the formats share. `documents.reading` is the way in."""
