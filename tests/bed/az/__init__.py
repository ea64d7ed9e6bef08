"""Microsoft's `az`, as a user types it at a shell, in front of the stand-in of Azure: see shell.py."""
