"""`python -m generator` is the command `cycleforge`."""

import sys

from generator.cli import process

if __name__ == "__main__":
    sys.exit(process())
