"""Who may talk to whom, written by hand beside the table in the plan: `source destination protocol ports`."""

from __future__ import annotations

from collections.abc import Iterator

ALWAYS = """
    compute   server     tcp   443 9443
    server    compute    tcp   22
    compute   compute    any   *
    compute   endpoints  tcp   443
    server    endpoints  tcp   443
    compute   netapp     any   111 635 2049 4045 4046 4049
    netapp    compute    any   *
    netapp    netapp     any   *
    compute   lustre     tcp   988 1019-1023
    lustre    compute    tcp   988 1019-1023
    lustre    lustre     any   *
    AzureMonitor lustre  tcp   *
    compute   database   tcp   3306
    database  database   any   *
"""
ACCESS = {
    "bastion": """
        bastion   server     tcp   22 443
        bastion   compute    tcp   22
        internet  bastion    tcp   443
        users     bastion    tcp   443
        AzureMonitor bastion tcp   443
        AzureCloud bastion   tcp   443
        GatewayManager bastion tcp 443
        server    bastion    any   8080 5701
        bastion   bastion    any   8080 5701
    """,
    "hub": """
        users     server     tcp   22 443
        users     compute    tcp   22
        users     endpoints  tcp   443
        server    users      any   *
        server    stranger   any   *
    """,
    "public": """
        users     server     tcp   22 443
    """,
}
ANY_HUB = """
        stranger  server     tcp   22 443
        stranger  compute    tcp   22
        stranger  endpoints  tcp   443
        server    server     tcp   22 443
"""
"""Where the hub's prefixes are not declared, whoever is connected is a user."""
JUMPBOX = {
    "bastion": """
        server    server     tcp   22 443
        bastion   server     tcp   3389
    """,
    "hub": """
        server    server     tcp   22 443
        users     server     tcp   3389
    """,
    "any-hub": """
        server    server     tcp   22 443 3389
        users     server     tcp   3389
        stranger  server     tcp   3389
    """,
    "public": """
        server    server     tcp   22 443 3389
    """,
}
OF_AZURE = ("AzureMonitor", "AzureCloud", "GatewayManager")


def expected(name: str, source: str, destination: str, protocol: str, port: int) -> bool:
    """Whether a connection is meant to succeed in a new network with everything in it."""
    if source == "probe" or destination in ("internet", *OF_AZURE):
        return True
    if destination == "users" and not name.startswith(("hub", "any-hub")):
        # Users of Bastion and of a public address are on the internet, to which every subnet may talk.
        return True
    return any(
        (source, destination) == (one, other) and _fits(protocol, port, kind, ports)
        for one, other, kind, ports in _rows(name)
    )


def _rows(name: str) -> Iterator[tuple[str, str, str, list[str]]]:
    access = name.removesuffix("-jumpbox")
    texts = [ALWAYS, ACCESS["hub" if access == "any-hub" else access]]
    texts += [ANY_HUB] if access == "any-hub" else []
    texts += [JUMPBOX[access]] if name.endswith("-jumpbox") else []
    for line in "".join(texts).split("\n"):
        if line.strip():
            source, destination, kind, *ports = line.split()
            yield source, destination, kind, ports


def _fits(protocol: str, port: int, kind: str, ports: list[str]) -> bool:
    if kind == "tcp" and protocol != "Tcp":
        return False
    return ports == ["*"] or any(
        int(first) <= port <= int(last or first) for first, _, last in (text.partition("-") for text in ports)
    )
