"""A pytest plugin: tests that import `generator` get the files of the installed wheel, package `cycleforge`."""

from __future__ import annotations

import importlib.util
import sys

_found = importlib.util.find_spec("cycleforge")
assert _found is not None
assert _found.origin is not None
_spec = importlib.util.spec_from_file_location(
    "generator", _found.origin, submodule_search_locations=_found.submodule_search_locations
)
assert _spec is not None
assert _spec.loader is not None
sys.modules["generator"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["generator"])
