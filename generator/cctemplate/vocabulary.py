"""Names that CycleCloud and its Slurm project know: which sections are where, and what each may set.

Sources: the pages below https://learn.microsoft.com/azure/cyclecloud/cluster-references/ (cluster, node-nodearray,
volume, network-interface, input-endpoint, cluster-init, parameter, configuration), the release notes of 8.6 to 8.9,
and the keys that cyclecloud-slurm 4.0.9 reads and writes.
"""

from __future__ import annotations

from difflib import SequenceMatcher
from functools import cache

from ..catalog import node_attributes
from ..words.suggestions import did_you_mean

NODE_KINDS = ("node", "nodearray")
_MOST = 300
"""Names among which a suggestion is looked for: more than any template of a person has."""
_SLIP = 0.8
"""Likeness from which a name is a misspelt one: one or two letters of an ordinary attribute."""

# Kind → kinds that may contain it; "" is the top of the file.
PARENTS: dict[str, frozenset[str]] = {
    "cluster": frozenset({""}),
    "environment": frozenset({""}),
    "noderef": frozenset({"", "cluster"}),
    "parameters": frozenset({"", "parameters"}),
    "parameter": frozenset({"", "parameters"}),
    "node": frozenset({"cluster"}),
    "nodearray": frozenset({"cluster"}),
    "configuration": frozenset(NODE_KINDS),
    "cluster-init": frozenset(NODE_KINDS),
    "volume": frozenset(NODE_KINDS),
    "network-interface": frozenset(NODE_KINDS),
    "input-endpoint": frozenset(NODE_KINDS),
    "list": frozenset({"parameter"}),
    "record": frozenset({"parameter"}),
}


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLUSTER = _words("""
    Abstract Autoscale Category CategoryOrder FormLayout IconUrl MaxCount MaxCoreCount ParentName UseLowPrio
""")
_DOCUMENTED = node_attributes()
_NODE = frozenset((*_DOCUMENTED.attributes, *_DOCUMENTED.set_by_template.keys))
_VOLUME = frozenset((*_DOCUMENTED.volume_attributes, *_DOCUMENTED.volume_set_by_template.keys))
_INTERFACE = _words("""
    AssociatePublicIpAddress StaticPublicIpAddress EnableIpForwarding PrivateIp NetworkInterfaceId SecurityGroup
    ApplicationSecurityGroups SubnetId Primary
""")
NODE_ONLY = _words("PrivateIp NetworkInterfaceId StaticPublicIpAddress")
"""Attributes of network interfaces that the reference marks "node only": a node array has no use for one address."""
STANDALONE_ONLY = _words("AssociatePublicIpAddress")
"""Attributes of network interfaces that CycleCloud takes of a node array only where its nodes are single VMs.

"Public IPs cannot be specified on nodes in an array": https://github.com/Azure/cyclecloud-slurm/issues/334, raised for
scale sets; https://github.com/vanzod/ccslurm_public_ip gets them with `Azure.AllocationMethod = standalone`.
"""
_PARAMETER = _words("""
    Label HideLabel Description Required DefaultValue Disabled Hidden Order ParameterType
    Config.Plugin Config.Template Config.Filter Config.OS Config.MinValue Config.MaxValue Config.IntegerOnly
    Config.MultiSelect Config.FreeForm Config.Entries Config.Label Config.NumLines Config.Increment Config.Query
    Config.SetDefault Config.Parameters Config.Required Config.ParameterType Config.Options Config.PlaceholderText
    Widget.Plugin Widget.Label Widget.FalseValue Widget.Warning Widget.WarnOnCheck
    Conditions.Hidden Conditions.Excluded Conditions.Required Conditions.Disabled Conditions.Value
""")
ATTRIBUTES: dict[str, frozenset[str]] = {
    "cluster": _CLUSTER,
    "node": _NODE,
    "nodearray": _NODE,
    "volume": _VOLUME,
    "network-interface": _INTERFACE,
    "input-endpoint": _words("PublicPort PrivatePort Protocol"),
    "cluster-init": _words("Project Spec Version Locker SourceLocker Order run_list Optional"),
    "parameters": _words("Order Description Label Hidden Conditions.Hidden Conditions.Excluded"),
    "parameter": _PARAMETER,
}
OPEN_PREFIXES = {"node": ("tags.",), "nodearray": ("tags.",)}
"""Attributes whose second part is free, in lower case."""

CONFIGURATION = _words("""
    slurm.version slurm.insiders slurm.role slurm.do_install slurm.install_pkg slurm.autoscale_pkg slurm.project_name
    slurm.user.name slurm.user.group slurm.user.uid slurm.user.gid munge.user.name munge.user.group munge.user.uid
    munge.user.gid slurm.slurmrestd.user.name slurm.slurmrestd.user.group slurm.slurmrestd.user.uid
    slurm.slurmrestd.user.gid slurm.enable_healthchecks slurm.accounting.enabled slurm.accounting.url
    slurm.accounting.user slurm.accounting.password slurm.accounting.certificate slurm.accounting.storageloc
    slurm.additional.config slurm.ha_enabled slurm.primary_scheduler_name slurm.secondary_scheduler_name
    slurm.is_primary_scheduler slurm.launch_parameters slurm.use_nodename_as_hostname slurm.node_prefix
    slurm.ensure_waagent_monitor_hostname slurm.ubuntu22_waagent_fix slurm.max_node_count slurm.dynamic_feature
    slurm.dynamic_config slurm.jwt_key_path slurm.imex.enabled slurm.autoscale slurm.hpc slurm.partition
    slurm.default_partition slurm.use_pcpu slurm.dampen_memory slurm.gpu_device_config slurm.overallocation
    autoscale.enabled autoscale.is_hpc autoscale.resources autoscale.resources.slurm_gpus
    cluster_init.fail_on_error cluster.identities.default cshared.server.legacy_links_disabled
    cyclecloud.converge_on_boot cyclecloud.hosts.standalone_dns.enabled cyclecloud.hosts.standalone_dns.alt_suffix
    cyclecloud.hosts.standalone_dns.subnets cyclecloud.hosts.simple_vpc_dns.enabled
    cyclecloud.healthagent.disable cyclecloud.healthagent.disabled
    cyclecloud.monitoring.enabled cyclecloud.monitoring.identity_client_id cyclecloud.monitoring.ingestion_endpoint
    cyclecloud.monitoring.dcgm_exporter_port cyclecloud.keepalive.timeout cyclecloud.discoverable
    cyclecloud.selinux.policy cyclecloud.dns.domain cyclecloud.dns.alias cyclecloud.samba.enabled
    http_proxy https_proxy no_proxy
""")
OLDER_CONFIGURATION = _words("""
    slurm.accounting.certificate_url slurm.disable_pmc slurm.install slurm.install_slurmdbd slurm.feature.name
    slurm.is_primary_slurmdbd slurm.is_secondary_scheduler slurm.is_secondary_slurmdbd slurm.is_tertiary_scheduler
    autoscale.disabled cyclecloud.enable_chef cyclecloud.fail2ban.enabled cyclecloud.maintenance_converge.enabled
    cyclecloud.ntp.disabled
""")
"""Keys that Microsoft's published templates of other schedulers and earlier releases set."""
STRICT_PREFIXES = ("slurm.", "munge.", "autoscale.")
"""Configuration of these names belongs to the Slurm project, which reads the listed keys and no others."""

MOUNT_KEYS = _words("""
    type export_path fs_type mountpoint cluster_name address options disabled raid_level raid_device_symlink devices
    vg_name lv_name order encryption.bits encryption.key encryption.name encryption.key_path
""")
EXPORT_KEYS = _words("type export_path owner group mode network sync writable options disabled samba.enabled")

DISPLAY_ONLY_PLUGIN = "pico.widget.HtmlTemplateWidget"
BUILTIN_LOCKER = "cyclecloud"
BUILTIN_PROJECTS: dict[str, frozenset[str]] = {
    "slurm": frozenset({"default", "scheduler", "login", "execute", "master", "pyxis"}),
    "pbspro": frozenset({"default", "server", "login", "execute", "master"}),
    "gridengine": frozenset({"default", "scheduler", "execute", "master"}),
    "htcondor": frozenset({"default", "scheduler", "execute", "master", "central-manager"}),
    "lsf": frozenset({"default", "master", "execute"}),
    "nfs": frozenset({"default"}),
    "beegfs": frozenset({"default", "client", "manager", "metadata", "storage", "mon"}),
    "healthagent": frozenset({"default"}),
    "monitoring": frozenset({"default"}),
}
"""Projects that CycleCloud servers fetch from github.com/Azure/cyclecloud-<name>, and their specs in any release."""

PARAMETER_TYPES = _words("""
    Boolean String StringList Integer Text Password Record Hidden Float
    Cloud.Region Cloud.Credentials Cloud.MachineType Cloud.Image Cloud.ClusterInitSpecs Cloud.Provider
    Azure.Subnet Azure.ManagedIdentity Azure.ResourceGroup Azure.MachineType Azure.Location Azure.StorageAccount
    Azure.LiveStorageAccount Azure.LiveStorageContainer Azure.Environment
""")
PLUGINS = _words("""
    pico.form.NumberTextBox pico.form.BooleanCheckBox pico.form.Dropdown pico.form.StringTextBox
    pico.form.QueryDropdown pico.form.RadioButtonsControl pico.form.NumberSlider pico.control.AutoCompleteDropdown
    pico.widget.HtmlTemplateWidget
""")
MOUNT_TYPES = _words("nfs nfs3 nfs4 glusterfs lustre beegfs cifs smb blobfuse blobfuse2 anf ebs raid fuse local")

SWITCHES = {
    "cluster": _words("Abstract Autoscale"),
    "node": _words("""
        Abstract KeepAlive UsePublicNetwork IsReturnProxy Interruptible EnableTerminateNotification
        EnableNodeHealthChecks DownloadJetpack InstallJetpack AwaitInstallation EncryptionAtHost EnableSecureBoot
        EnableVTPM EphemeralOSDisk EnableAcceleratedNetworking Azure.SingleScaleset Azure.SinglePlacementGroup
        Azure.Overprovision
    """),
    "volume": _words("SSD Persistent Disabled"),
    "network-interface": _words("AssociatePublicIpAddress EnableIpForwarding Primary StaticPublicIpAddress"),
    "parameter": _words("HideLabel Required Hidden Disabled Config.IntegerOnly Config.MultiSelect Config.FreeForm"),
}
"""Kind of section → attributes that are true or false; `node` stands for node arrays, too."""
RANGES: dict[str, dict[str, tuple[float, float, bool]]] = {
    "cluster": {"MaxCount": (0, 1e6, True), "MaxCoreCount": (0, 1e8, True)},
    "node": {
        "MaxCount": (0, 1e6, True),
        "MaxCoreCount": (0, 1e8, True),
        "InitialCount": (0, 1e6, True),
        "InitialCoreCount": (0, 1e8, True),
        "Azure.MaxScalesetSize": (1, 1000, True),
        "MaxPrice": (-1, 1e4, False),
    },
    "volume": {"Size": (0, 65536, False), "Azure.Lun": (0, 63, True)},
    "input-endpoint": {"PublicPort": (1, 65535, True), "PrivatePort": (1, 65535, True)},
}
"""Kind of section → attribute → least and largest value, and whether it is whole. Sizes in GB, prices in USD per hour.

Sources: the reference pages above; scale sets: learn.microsoft.com/azure/virtual-machine-scale-sets; MaxPrice -1 means
the on-demand price."""

BUILTIN_PARAMETERS = frozenset({"ClusterName"})
"""Names that every expression may read."""


def meant(word: str, known: frozenset[str]) -> str | None:
    """The hint at a known name that the word was probably meant to be; none among too many to compare each with."""
    if len(known) > _MOST:
        return None
    close = did_you_mean(word, sorted(known))
    return f"did you mean {close!r}?" if close else None


def misspelt(word: str, known: frozenset[str]) -> bool:
    """Return True when the word is a misspelling of a known name, not merely similar to it."""
    close = did_you_mean(word, sorted(known))
    return close is not None and SequenceMatcher(None, word.lower(), close.lower()).ratio() >= _SLIP


def knows(known: frozenset[str], word: str) -> bool:
    """Look a name up without regard to case."""
    return word.lower() in _lower(known)


@cache
def _lower(known: frozenset[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in known)
