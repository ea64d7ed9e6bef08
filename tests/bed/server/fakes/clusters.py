"""Commands of the CycleCloud CLI about a cluster that is there: how it is, its nodes, start, end, retry.

Sources: https://learn.microsoft.com/azure/cyclecloud/cli (commands and options); public transcripts of 8.4.2 and 8.6.1
(heading with the states, a line for each node, `off` before the first start); Azure/azurehpc
ci/scripts/cyclecloud_helpers.sh (`show_nodes --format=json`: a list with Name, State, TargetState);
Azure/cyclecloud-slurm integration/src/integration.py (an unknown name ends with an error).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.bed.server.fakes.state import State

RULER = "-" * 40
OFF: dict[str, Any] = {"State": "Off", "Status": "Off", "TargetState": "Off"}
READY: dict[str, Any] = {"State": "Started", "Status": "Ready", "TargetState": "Started"}
PREPARING: dict[str, Any] = {"State": "Allocation", "Status": "Acquiring", "TargetState": "Started"}


class Clusters:
    """`cyclecloud show_cluster`, `show_nodes`, `start_cluster`, `terminate_cluster`, `retry`."""

    def __init__(self, site: State) -> None:
        self._site = site
        self.warnings = ""
        """What a release prints before everything else."""
        self.has_heading = True
        """Whether the state of the cluster stands above its nodes; no documentation says so."""
        self.converges = True
        """Whether what was begun is done at the next look; otherwise it is on its way for ever."""
        self.handlers = {"show_cluster": self._show, "show_nodes": self._nodes, "start_cluster": self._start,
                         "terminate_cluster": self._terminate, "retry": self._retry}  # fmt: skip

    def run(self, words: list[str]) -> dict[str, Any]:
        name = words[words.index("-c") + 1] if "-c" in words else words[1]
        if name not in self._site.clusters:
            return {"status": 1, "output": self.warnings, "errors": f"**** Error: Cluster '{name}' was not found\n"}
        answer = self.handlers[words[0]](name, self._site.clusters[name], words)
        return answer | {"output": self.warnings + str(answer.get("output", ""))}

    def _records(self, cluster: dict[str, Any]) -> list[dict[str, Any]]:
        records: list[dict[str, Any]] = cluster.setdefault("nodes", [{"Name": "scheduler", "Template": None, **OFF}])
        return records

    def _show(self, name: str, cluster: dict[str, Any], _: list[str]) -> dict[str, Any]:
        return {"output": self._shown(name, cluster)}

    def _shown(self, name: str, cluster: dict[str, Any]) -> str:
        state, target = cluster.get("state", "started" if cluster.get("started") else "off"), cluster.get("target", "")
        head = f"{RULER}\n{name} : {state}{f' -> {target}' if target else ''}\n{RULER}\n" if self.has_heading else name
        records = self._records(cluster)
        rows = [f"    {each['Name']}: {each['State']} {each.get('InstanceId', '--')} --" for each in records]
        text = "\n".join([f"{head}\nResource group: ", "Cluster nodes:", *rows, f"Total nodes: {len(records)}", ""])
        if target and self.converges:
            cluster["state"] = cluster.pop("target")
        return text

    def _nodes(self, name: str, cluster: dict[str, Any], words: list[str]) -> dict[str, Any]:
        if "--format=json" not in words:
            return {"output": self._shown(name, cluster)}
        wanted = words[words.index("-a") + 1].split(",")
        records = [{key: row[key] for key in wanted if row.get(key) is not None} for row in self._records(cluster)]
        # A pretty list, as jq gets it in the sources; nothing is printed for no node at all.
        return {"output": json.dumps(records, indent=4) + "\n" if records else ""}

    def _start(self, name: str, cluster: dict[str, Any], _: list[str]) -> dict[str, Any]:
        cluster.update(started=True, state="allocation", target="started")
        for row in self._records(cluster):
            if row.get("Template") is None:
                row.update(READY if self.converges else PREPARING)
        return {"output": f"Starting cluster {name}....\n" + self._shown(name, cluster)}

    def _terminate(self, name: str, cluster: dict[str, Any], _: list[str]) -> dict[str, Any]:
        cluster.update(started=False, state="termination", target="terminated")
        for row in self._records(cluster):
            row.update(State="Terminating", Status="Terminating", TargetState="Terminated")
            if self.converges:
                row.update(OFF, InstanceId=None)
        return {"output": f"Terminating cluster {name}....\n" + self._shown(name, cluster)}

    def _retry(self, name: str, cluster: dict[str, Any], _: list[str]) -> dict[str, Any]:
        for row in self._records(cluster):
            if row["Status"] == "Failed":
                row.update(PREPARING, StatusMessage="")
        return {"output": f"Retrying cluster {name}....\n"}
