"""`cycleforge deploy`."""
