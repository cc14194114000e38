"""Tests of the project."""

import os
import sys

# Hundreds of processes import the same modules: each would compile them anew in a shell that says
# not to keep what was compiled.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
