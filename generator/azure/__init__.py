"""What is asked of Azure Resource Manager, and, by three verbs only, changed there.

`requests` declares every path that is sent, `reader` cannot change anything, `writer` can; `checks` is what preflight
looks at. Nothing here keeps state: what is true is asked.
"""
