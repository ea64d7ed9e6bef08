"""How a self-contained HTML page is made: templates that escape, one style and script for all, drawings in SVG."""
