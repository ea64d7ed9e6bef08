"""What Azure limits, charges and supports, and what its answers mean."""

from __future__ import annotations

from typing import Literal

import msgspec

from .files import Cited, Fact, Figure, Keys, Row, Rows, Value

# ---------------------------------------------------------------- limits and names


class ScaleSetLimit(Value[int], frozen=True, kw_only=True):
    with_approval: int
    """Once Azure support has raised it."""


class Length(Value[int], frozen=True, kw_only=True):
    min: int


class Pattern(Row, frozen=True, kw_only=True):
    pattern: str


class Names(Fact, frozen=True, kw_only=True):
    """How long names may be, and how many there may be."""

    container: Length
    host_name_label: Value[int]
    mysql_server: Length
    private_dns_zone: Value[int]
    resource_group: Value[int]
    storage_account: Pattern
    subnet: Value[int]
    tag_name: Value[int]
    tag_name_in_bicep: Value[int]
    tag_name_of_storage_account: Value[int]
    tag_value: Value[int]
    tags_per_dns_zone: Value[int]
    tags_per_resource: Value[int]


class ReservedPaths(Row, frozen=True, kw_only=True):
    paths: dict[str, str]
    """Mount point → why nothing may be mounted there."""


class Limits(Fact, frozen=True, kw_only=True):
    bastion_subnet_prefix: Value[int]
    bicep: Value[str]
    cloud_node_memory_percent: Value[int]
    custom_data: Value[int]
    database_subnet_prefix: Value[int]
    deployment_job: Value[int]
    deployment_job_reserve: Value[int]
    extension_script: Value[int]
    guest_memory_spare_percent: Value[Figure]
    loaded_file: Value[int]
    loaded_text: Value[int]
    lustre_subnet_prefix: Value[int]
    memory_withheld_mib: Value[int]
    memory_withheld_percent: Value[int]
    names: Names
    netapp_subnet_prefix: Value[int]
    owned_slurm_keys: Keys[dict[str, str]]
    private_ranges: Value[tuple[str, ...]]
    reserved_addresses_per_subnet: Value[int]
    reserved_mount_points: ReservedPaths
    scale_set_with_infiniband: ScaleSetLimit
    slurm_max_node_count: Value[int]
    smallest_subnet_prefix: Value[int]


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
    recipe_hosts: Rows[dict[str, tuple[str, ...]]]
    rules: dict[str, Destination]


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


class NfsTemplate(Row, frozen=True, kw_only=True):
    min_gb: int
    max_gb: int


class Nfs(Fact, frozen=True, kw_only=True):
    disk: Rows[tuple[DiskRate, ...]]
    template: NfsTemplate


class FileSystems(Fact, frozen=True, kw_only=True):
    """Tiers, service levels, sizes and steps of Managed Lustre, NetApp Files and the built-in NFS disks."""

    amlfs: LustreTiers
    amlfs_subnet_prefix: Rows[tuple[SubnetOfSize, ...]]
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


# ---------------------------------------------------------------- prices and support


class DiskTier(Fact, frozen=True, kw_only=True):
    max_gib: int
    number: int


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

    disk_tiers: Rows[tuple[DiskTier, ...]]
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


# ---------------------------------------------------------------- answers


class Noise(Row, frozen=True, kw_only=True):
    """What Azure's what-if is known to show although it does not happen."""

    type: str
    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    why: str


class WhatIf(Fact, frozen=True, kw_only=True):
    noise: Rows[tuple[Noise, ...]]


class Failure(Row, frozen=True, kw_only=True):
    """What Azure's error codes mean for a deployment, and what to do."""

    codes: tuple[str, ...]
    words: str
    fix: str


class AzureFailures(Fact, frozen=True, kw_only=True):
    failures: Rows[tuple[Failure, ...]]
