"""Deleting a deployment: `survey` asks what is there, `decide` says what goes and what stays, `carry_out` does it.

Nothing is remembered between two runs. Each asks anew, so a run that was ended anywhere is continued by the next one.
"""
