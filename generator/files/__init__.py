"""Rendered files in memory, and the sources that the generator carries."""
