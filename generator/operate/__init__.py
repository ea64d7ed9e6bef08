"""One verb, one function: brings Azure, ssh, the site and the plan together, and returns data.

Nothing here prints, asks, or knows the command line.
"""
