"""One class per section of a definition; every field is declared here and nowhere else."""
