"""`cycleforge preflight` against the stand-in of Azure Resource Manager: each finding provoked once and mended once."""
