"""`cycleforge what-if`."""
