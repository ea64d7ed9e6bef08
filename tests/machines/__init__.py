"""Disposable Debian machines: a read-only root, throw-away overlays of it, and booted containers."""
