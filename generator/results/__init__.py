"""Files that other machines have written: walked, read within bounds and strictly, with the names of nodes in them.

What a file should hold is for the rooms `health` and `validation` to say; whatever is wrong is an `Unusable`.
"""
