"""Writing that leaves the old or the new content, never half."""
