"""The wheel: what is in it, and the command as it is once installed elsewhere."""
