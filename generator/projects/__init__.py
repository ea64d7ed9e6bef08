"""Cluster-init projects: what a project folder says, which files it uploads, and the lock of released versions."""
