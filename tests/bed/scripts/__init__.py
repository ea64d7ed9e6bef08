"""One script of a project, run with stand-ins on its PATH."""
