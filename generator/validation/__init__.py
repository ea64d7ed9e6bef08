"""Records of validation jobs (`run.json`, docs/records.md): read them, judge the cluster by them, show what they say.

    files ─▶ read ─▶ gather ─▶ assess ─▶ text, machine, page
             (strict)          (newest, history, nodes)

Nothing here asks the clock or a cluster; a record that cannot be trusted is a problem, never a pass.
"""
