"""The lines that we print and write for `az`, typed with Microsoft's own `az`."""
