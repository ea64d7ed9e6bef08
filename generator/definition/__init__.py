"""Text → tree with positions → model → problems."""
