"""docs/tutorial.md, typed by a test."""
