"""First configuration of a CycleCloud server: bounded, repeatable steps and one status file.

Runs on the server with the Python of its image: standard library only, and nothing newer than Python 3.6 (EL 8).
"""

STATUS_SCHEMA = 1
"""Version of `status.json`; a reader that finds a higher one must not guess."""
