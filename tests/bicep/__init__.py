"""Bicep modules and rendered deployments."""
