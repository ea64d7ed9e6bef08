"""Disposable Debian nodes, as overlays or booted with systemd, and the node agent that runs projects on them."""
