"""What Azure's own validation demands, applied to what definitions lead to."""
