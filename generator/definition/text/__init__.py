"""The text of a definition: YAML 1.2 with positions, variables filled in."""
