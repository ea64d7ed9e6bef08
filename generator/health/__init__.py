"""Results of the nodes' health checks (cluster-init project slurm_nhc): read them, keep the newest, judge a fleet.

    files ─▶ read ─▶ gather ─▶ assess ─▶ text, machine
             (strict) (newest)  (states, fleet)

Nothing here asks the clock or a cluster; a result that cannot be trusted is a problem, never a pass.
"""
