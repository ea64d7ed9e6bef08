"""Whether this command has printed its result as JSON.

One that fails before prints its error as JSON instead; one that fails afterwards must not print a second value.
"""

is_told = False
