"""What is written from the model: the commented reference, the table of keys, the JSON Schema, the starter."""
