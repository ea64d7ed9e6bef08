"""Requests that Microsoft documents, as far as a verb sends them. No release has a version in the path.

Those that start, end or scale nodes are not among them: the nodes of a cluster are Slurm's, and its azslurm sends them.
Source: https://learn.microsoft.com/azure/cyclecloud/api and https://learn.microsoft.com/azure/cyclecloud/how-to/use-rest-api
"""

from __future__ import annotations

from ..request import Request

_API = "https://learn.microsoft.com/azure/cyclecloud/api"

STATUS = Request(
    "GET", "/clusters/{cluster}/status", _API, query=("nodes",), cli="cyclecloud show_cluster {cluster} --long"
)
USAGE = Request("GET", "/clusters/{cluster}/usage", _API, query=("timeframe", "from", "to", "granularity"))
