"""`firewall-rules.json`: what leaves the network, for whoever configures the firewall."""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from ..files.file import Files, Json, text
from ..plan.deployment import Plan
from ..plan.egress import EgressRule


def render(plan: Plan) -> Files:
    """One rule a line. A kind of target without a value is left out."""
    lines = ",\n".join(json.dumps(_rule(rule), ensure_ascii=False) for rule in plan.egress.rules)
    return {PurePosixPath("firewall-rules.json"): text(f"[\n{lines}\n]\n")}


def _rule(rule: EgressRule) -> dict[str, Json]:
    targets = {"fqdns": rule.fqdns, "serviceTags": rule.service_tags, "addresses": rule.addresses}
    return {
        "name": rule.name,
        "sources": list(rule.sources),
        "sourcePrefixes": list(rule.prefixes),
        "protocol": rule.protocol,
        "ports": list(rule.ports),
        **{name: list(values) for name, values in targets.items() if values},
        **({"described": rule.described} if rule.described else {}),
        "reason": rule.reason,
        "optional": rule.optional,
    }
