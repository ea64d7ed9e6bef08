"""`cycleforge delete` against the stand-in of Azure Resource Manager."""
