"""Files that other machines have written: found, read strictly and within limits, with the node names in them.

The rooms `health` and `validation` declare the content. Everything that is wrong with a file raises `Unusable`.
"""
