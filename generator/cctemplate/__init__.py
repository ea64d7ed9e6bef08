"""CycleCloud cluster templates: read them, look through inheritance and expressions, check them, write values."""
