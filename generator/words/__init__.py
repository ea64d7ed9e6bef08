"""How we say things: suggestions, sizes, plurals, tables, progress. Nothing here knows the field."""
