"""What leaves the network: the rules that a firewall needs."""

from __future__ import annotations

from ...records import record


@record
class EgressRule:
    """One kind of destination; exactly one of `fqdns`, `service_tags`, `addresses` and `described` is given."""

    name: str
    sources: tuple[str, ...]
    """Who connects: `server`, `nodes`, `lustre` or `jumpbox`."""
    prefixes: tuple[str, ...]
    """Their subnets (CIDR); empty where they are not known."""
    protocol: str
    ports: tuple[int, ...]
    fqdns: tuple[str, ...]
    service_tags: tuple[str, ...]
    addresses: tuple[str, ...]
    described: str
    """In words: which hosts these are depends on how the site has set up its tools."""
    reason: str
    optional: bool
    """Whether everything works without it."""

    @property
    def is_lustres(self) -> bool:
        """Whether the hosts of Managed Lustre connect."""
        return "lustre" in self.sources

    @property
    def targets(self) -> tuple[str, ...]:
        """All destinations, of whichever kind."""
        return (*self.fqdns, *self.service_tags, *self.addresses)


@record
class EgressPlan:
    """Everything outside of the network that a deployment connects to."""

    rules: tuple[EgressRule, ...]
    direct: tuple[str, ...]
    """Addresses of Azure itself, which neither a firewall nor a proxy may be in front of."""

    @property
    def has_lustre(self) -> bool:
        """Whether a file system is created that needs rules of its own."""
        return any(rule.is_lustres for rule in self.rules)
