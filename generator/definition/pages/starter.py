"""What `cycleforge init` writes: a short commented definition, or a copy of a shipped one under another name."""

from __future__ import annotations

import re

from ...files import assets

MODELINE = "# yaml-language-server: $schema=definition.schema.json\n"
_STARTER = """\
# One deployment: a CycleCloud server, its network and storage, one Slurm cluster. Only name, location and one
# partition are required; every other key has a default. All keys: cluster_defs/reference.yaml, docs/definition.md.
# Without slurm only server, network and storage are built; server.existing names a server that runs already.
#   check   cycleforge validate {name}
#   look    cycleforge plan {name}
#   build   cycleforge build {name}
name: {name}
location: southcentralus            # az account list-locations -o table

admin:
  username: ccadmin
  ssh_public_key: ${{CYCLECLOUD_SSH_PUBLIC_KEY}}   # unset: the deployment asks; the password is never in a file

network:
  address_space: 10.50.0.0/20
  access: bastion                   # bastion | hub (a network with a VPN gateway) | public (listed sources only)
  # hub: {{vnet_id: "${{HUB_VNET_ID}}", use_remote_gateway: true}}
  # allowed_sources: [203.0.113.0/24]

storage:
  home: {{type: nfs, size_gb: 256}}   # nfs: a disk of the scheduler | anf: NetApp Files | existing
  # mounts:
  #   - {{path: /data, type: amlfs, tier: 250, size_tib: 8}}

slurm:
  login: {{count: 1}}
  partitions:
    - {{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true}}
    # - {{name: hpc, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}}

# jobs:
#   training: [opt-175b]
"""


# Names that two deployments must not share; a copy gets its own.
_OWN_NAMES = re.compile(
    r"(?m)^(?P<key> +(?:prefix|resource_group|cluster_name|database): (?:\$\{LAB_PREFIX:-)?)"
    r"(?:reference|lab)(?P<rest>[-_}].*)?$"
)


def presets() -> tuple[str, ...]:
    """`starter` and the names of the shipped definitions."""
    return ("starter", *sorted(path.stem for path in assets.folder("cluster_defs").glob("*.yaml")))


def starter(name: str, preset: str = "starter") -> str:
    """The text of a new definition; `preset` is one of `presets()`, otherwise KeyError."""
    if preset == "starter":
        return MODELINE + _STARTER.format(name=name)
    if preset not in presets():
        raise KeyError(preset)
    text = (assets.folder("cluster_defs") / f"{preset}.yaml").read_text(encoding="utf-8")
    text = re.sub(r"(?m)^name: .*$", f"name: {name}", text, count=1)
    return _OWN_NAMES.sub(lambda found: f"{found['key']}{name}{found['rest'] or ''}", text)
