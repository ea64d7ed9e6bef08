"""The version of CycleForge; it stands in every manifest that it writes."""

__version__ = "0.1.0"
