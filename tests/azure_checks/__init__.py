"""Preflight checks of resources and network."""
