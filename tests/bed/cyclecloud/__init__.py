"""A stand-in of CycleCloud's REST interface, over TLS with a certificate that it signed itself.

    with running_site(folder) as site:
        site.state.cluster("demo", hpc=4)                    # a scheduler and a partition of four
        site.state.clusters["demo"].starts()
        …the code under test, at 127.0.0.1, site.port, pinned to site.fingerprint, as site.login…
        assert site.refused == [] and site.changes == []

Which requests there are: documented.json and undocumented.json, each row with its public source; any other is refused.
What goes on in a cluster goes on by one step for each answer that shows nodes, never by the clock.
"""

from .site import PASSWORD, USER, SiteStandIn, running_site
from .state import Cluster, Failing, State

__all__ = ["PASSWORD", "USER", "Cluster", "Failing", "SiteStandIn", "State", "running_site"]
