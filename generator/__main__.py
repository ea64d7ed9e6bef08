"""`python -m generator` is the command `cycleforge`."""

from .cli import process

if __name__ == "__main__":
    process()
