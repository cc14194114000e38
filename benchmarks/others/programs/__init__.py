"""What each tool is asked to do, in its own environment with this repository on its path."""
