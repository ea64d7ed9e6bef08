"""Performance as ratios against named yardsticks, measured in one run: `python -m benchmarks`."""
