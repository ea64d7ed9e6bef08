"""Requests that Microsoft documents. No release has a version in the path.

Source: https://learn.microsoft.com/azure/cyclecloud/api and https://learn.microsoft.com/azure/cyclecloud/how-to/use-rest-api
"""

from __future__ import annotations

from ..request import Request

_API = "https://learn.microsoft.com/azure/cyclecloud/api"
_NOTES = "https://learn.microsoft.com/azure/cyclecloud/release-notes"
_NODES = "/clusters/{cluster}/nodes"

STATUS = Request(
    "GET", "/clusters/{cluster}/status", _API, query=("nodes",), cli="cyclecloud show_cluster {cluster} --long"
)
NODES = Request("GET", _NODES, _API, query=("operation", "request_id"))
USAGE = Request("GET", "/clusters/{cluster}/usage", _API, query=("timeframe", "from", "to", "granularity"))
OPERATION = Request("GET", "/operations/{operation}", _API)
OPERATIONS = Request("GET", "/operations/", _API, query=("request_id",))
"""A list of one operation, or of none where the server has never seen the id."""

CREATE = Request("POST", f"{_NODES}/create", _API)
START = Request("POST", f"{_NODES}/start", _API)
DEALLOCATE = Request("POST", f"{_NODES}/deallocate", _API)
TERMINATE = Request("POST", f"{_NODES}/terminate", _API)
REMOVE = Request("POST", f"{_NODES}/remove", _API)
SHUTDOWN = Request("POST", f"{_NODES}/shutdown", _API)
RESTART = Request("POST", f"{_NODES}/restart", f"{_NOTES}/8-8-0", since="8.8.0")
REIMAGE = Request("POST", f"{_NODES}/reimage", f"{_NOTES}/8-8-0", since="8.8.0")
SCALE = Request("POST", "/clusters/{cluster}/scale/{array}", _API, query=("totalNodeCount", "totalCoreCount"))
"""Once, and only upwards."""
