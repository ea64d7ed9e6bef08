"""What Azure limits, charges and supports, and what its answers mean."""

from __future__ import annotations

from typing import Literal

import msgspec

from .files import Cited, Fact, Figure, Row, table

# ---------------------------------------------------------------- limits and names


class Limit(Row, frozen=True, kw_only=True):
    """A number of Azure, CycleCloud or Slurm, in its `unit`."""

    value: int


class ScaleSetLimit(Limit, frozen=True, kw_only=True):
    with_approval: int
    """Once Azure support has raised it."""


class Share(Row, frozen=True, kw_only=True):
    value: Figure


class Version(Row, frozen=True, kw_only=True):
    value: str


class Ranges(Row, frozen=True, kw_only=True):
    value: tuple[str, ...]


class Length(Limit, frozen=True, kw_only=True):
    min: int


class Pattern(Row, frozen=True, kw_only=True):
    pattern: str


class Names(Fact, frozen=True, kw_only=True):
    """How long names may be, and how many there may be."""

    container: Length
    host_name_label: Limit
    mysql_server: Length
    private_dns_zone: Limit
    resource_group: Limit
    storage_account: Pattern
    subnet: Limit
    tag_name: Limit
    tag_name_in_bicep: Limit
    tag_name_of_storage_account: Limit
    tag_value: Limit
    tags_per_dns_zone: Limit
    tags_per_resource: Limit


class OwnedKeys(Row, frozen=True, kw_only=True):
    keys: dict[str, str]
    """Key of slurm.conf → why the definition cannot set it."""


class ReservedPaths(Row, frozen=True, kw_only=True):
    paths: dict[str, str]
    """Mount point → why nothing may be mounted there."""


class Limits(Fact, frozen=True, kw_only=True):
    """Limits of Azure, CycleCloud and Slurm."""

    bastion_subnet_prefix: Limit
    bicep: Version
    cloud_node_memory_percent: Limit
    custom_data: Limit
    database_subnet_prefix: Limit
    deployment_job: Limit
    deployment_job_reserve: Limit
    extension_script: Limit
    guest_memory_spare_percent: Share
    loaded_file: Limit
    loaded_text: Limit
    lustre_subnet_prefix: Limit
    memory_withheld_mib: Limit
    memory_withheld_percent: Limit
    names: Names
    netapp_subnet_prefix: Limit
    owned_slurm_keys: OwnedKeys
    private_ranges: Ranges
    reserved_addresses_per_subnet: Limit
    reserved_mount_points: ReservedPaths
    scale_set_with_infiniband: ScaleSetLimit
    slurm_max_node_count: Limit
    smallest_subnet_prefix: Limit


class ResourceName(Cited, frozen=True, kw_only=True):
    """What a type of resource asks of its name."""

    min: int
    max: int
    pattern: str
    words: str
    """The pattern, for people."""


class ResourceNames(Cited, frozen=True, kw_only=True):
    names: dict[str, ResourceName]
    """By type of resource; of a list in another's properties as well."""


limits = table("limits", Limits)
resource_names = table("resource_names", ResourceNames)

# ---------------------------------------------------------------- places


class Region(Fact, frozen=True, kw_only=True):
    cloud: str
    pair: bool | None
    """Whether it has a region as its pair."""
    zones: bool
    """Whether it has availability zones."""


class Regions(Row, frozen=True, kw_only=True):
    pair_note: str
    regions: dict[str, Region]


class Cloud(Fact, frozen=True, kw_only=True):
    """One of Azure's clouds: its name for the Azure CLI, its addresses, and how others end."""

    authority: str
    az_cli: str
    blob_endpoint: str
    mysql_domain: str
    resource_manager: str


class Clouds(Row, frozen=True, kw_only=True):
    clouds: dict[str, Cloud]


class Direct(Row, frozen=True, kw_only=True):
    addresses: tuple[str, ...]


class RecipeHosts(Row, frozen=True, kw_only=True):
    rows: dict[str, tuple[str, ...]]


class Destination(Row, frozen=True, kw_only=True):
    """Where something connects to on the internet: names, addresses, Azure's service tags, or words."""

    when: str
    who: tuple[str, ...]
    reason: str
    optional: bool
    protocol: Literal["TCP", "UDP", "Any"]
    ports: tuple[int, ...]
    fqdns: tuple[str, ...] = ()
    by_cloud: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """Other names in other clouds."""
    addresses: tuple[str, ...] = ()
    service_tags: tuple[str, ...] = ()
    described: str = ""


class Egress(Fact, frozen=True, kw_only=True):
    """Destinations on the internet by name, what a recipe adds, and what is never filtered."""

    direct: Direct
    recipe_hosts: RecipeHosts
    rules: dict[str, Destination]


regions = table("regions", Regions)
clouds = table("clouds", Clouds)
egress = table("egress", Egress)

# ---------------------------------------------------------------- file systems and databases


class TierSizes(Fact, frozen=True, kw_only=True):
    min_tib: int
    max_tib: int
    step_tib: int


class LustreTiers(Row, frozen=True, kw_only=True):
    tiers: dict[str, TierSizes]


class SubnetOfSize(Fact, frozen=True, kw_only=True):
    max_tib: int
    prefix: int


class SubnetsOfSizes(Row, frozen=True, kw_only=True):
    rows: tuple[SubnetOfSize, ...]


class LargeVolume(Row, frozen=True, kw_only=True):
    min_gib: int
    max_gib: int
    max_mib_per_s: int


class Volume(Row, frozen=True, kw_only=True):
    max_gib: int
    max_mib_per_s: int


class RegionalQuota(Row, frozen=True, kw_only=True):
    tib: int


class ServiceLevel(Row, frozen=True, kw_only=True):
    mib_per_s_per_tib: int | None
    """None: the definition names the throughput."""
    min_mib_per_s: int | None = None
    max_mib_per_s_per_tib: int | None = None


class NetApp(Fact, frozen=True, kw_only=True):
    large_volume: LargeVolume
    regional_quota: RegionalQuota
    service_levels: dict[str, ServiceLevel]
    volume: Volume


class DiskRate(Fact, frozen=True, kw_only=True):
    max_gib: int
    mb_per_s: int


class DiskRates(Row, frozen=True, kw_only=True):
    rows: tuple[DiskRate, ...]


class NfsTemplate(Row, frozen=True, kw_only=True):
    min_gb: int
    max_gb: int


class Nfs(Fact, frozen=True, kw_only=True):
    disk: DiskRates
    template: NfsTemplate


class FileSystems(Fact, frozen=True, kw_only=True):
    """Tiers, service levels, sizes and steps of Managed Lustre, NetApp Files and the built-in NFS disks."""

    amlfs: LustreTiers
    amlfs_subnet_prefix: SubnetsOfSizes
    netapp: NetApp
    nfs: Nfs


class MySqlSize(Fact, frozen=True, kw_only=True):
    max_iops: int
    tier: str


class MySqlSizes(Row, frozen=True, kw_only=True):
    sizes: dict[str, MySqlSize]


class MySqlDefaults(Row, frozen=True, kw_only=True):
    sku: str
    sku_with_gpus: str


class MySqlStorage(Row, frozen=True, kw_only=True):
    max_by_tier: dict[str, int]


class MySqlAuthority(Row, frozen=True, kw_only=True):
    url: str


class MySql(Fact, frozen=True, kw_only=True):
    """Compute sizes, storage and defaults of MySQL flexible servers."""

    authority: MySqlAuthority
    compute_sizes: MySqlSizes
    defaults: MySqlDefaults
    storage: MySqlStorage


file_systems = table("file_systems", FileSystems)
mount_options = table("mount_options", dict[str, Version])
mysql = table("mysql", MySql)

# ---------------------------------------------------------------- prices and support


class DiskTier(Fact, frozen=True, kw_only=True):
    max_gib: int
    number: int


class DiskTiers(Row, frozen=True, kw_only=True):
    rows: tuple[DiskTier, ...]


class Condition(Fact, frozen=True, kw_only=True):
    """One of the four texts says how the field of an item is compared."""

    field: str
    is_: str | None = msgspec.field(default=None, name="is")
    contains: str | None = None
    ends: str | None = None
    word: str | None = None


class Meter(Row, frozen=True, kw_only=True):
    """How a thing is found in the list: what is asked of it, and which of the answers are kept or dropped."""

    ask: tuple[Condition, ...]
    keep: tuple[Condition, ...] = ()
    drop: tuple[Condition, ...] = ()
    region: str | None = None


class Month(Row, frozen=True, kw_only=True):
    hours: int


class PriceList(Row, frozen=True, kw_only=True):
    address: str
    api_version: str
    currencies: tuple[str, ...]


class Meters(Fact, frozen=True, kw_only=True):
    """Azure's public price list, and the sizes that disks are billed as."""

    disk_tiers: DiskTiers
    meters: dict[str, Meter]
    month: Month
    price_list: PriceList


class MySqlSupport(Row, frozen=True, kw_only=True):
    versions: dict[str, str | None]
    """Version → its last day; None: not published."""


class WindowsSupport(Row, frozen=True, kw_only=True):
    releases: dict[str, dict[str, str | None]]
    """Release → edition → its last day."""


class Support(Fact, frozen=True, kw_only=True):
    """Until when versions of MySQL and Windows are in support, as it was published on the day `as_of`."""

    as_of: str
    mysql: MySqlSupport
    windows_11: WindowsSupport


meters = table("meters", Meters)
support = table("support", Support)

# ---------------------------------------------------------------- answers


class Noise(Row, frozen=True, kw_only=True):
    """What Azure's what-if is known to show although it does not happen."""

    type: str
    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    why: str


class AllNoise(Row, frozen=True, kw_only=True):
    rows: tuple[Noise, ...]


class WhatIf(Fact, frozen=True, kw_only=True):
    noise: AllNoise


class Failure(Row, frozen=True, kw_only=True):
    """What Azure's error codes mean for a deployment, and what to do."""

    codes: tuple[str, ...]
    words: str
    fix: str


class Failures(Row, frozen=True, kw_only=True):
    rows: tuple[Failure, ...]


class AzureFailures(Fact, frozen=True, kw_only=True):
    failures: Failures


what_if = table("what_if", WhatIf)
azure_failures = table("azure_failures", AzureFailures)
