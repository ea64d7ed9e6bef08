"""The kinds of file system: one class each, and the list of them."""
