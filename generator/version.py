"""The version of CycleForge; it is in every manifest that it writes."""

__version__ = "0.1.0"
