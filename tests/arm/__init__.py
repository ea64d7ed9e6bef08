"""The stand-in of Azure Resource Manager itself: tests/bed/arm."""
