"""Plan to files: one module per artefact family; nothing is written here."""
