"""Connecting: rendered `ssh_config`, `cycleforge connect`, and real ssh through both."""
