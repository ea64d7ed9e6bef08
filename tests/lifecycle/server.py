"""A stand-in for `ssh` to the CycleCloud server: it ends the nodes, as long as there is a server.

`cyclecloud terminate_cluster` ends all nodes of a cluster:
https://learn.microsoft.com/azure/cyclecloud/how-to/start-cluster
"""

from __future__ import annotations

from tests.lifecycle.azure import Azure

NODES = "cyclecloud"
"""Who made the nodes."""


def answer(azure: Azure, words: list[str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `ssh`; 255 where nothing answers."""
    if not any(each.endswith("/cycleforge-bootstrap") for each in azure.resources):
        return 255, "", "ssh: connect to host 10.0.0.4 port 22: Connection timed out\n"
    if "cyclecloud terminate_cluster" in " ".join(words):
        for each in [each for each, found in azure.resources.items() if found["by"] == NODES]:
            del azure.resources[each]
    return 0, "", ""
