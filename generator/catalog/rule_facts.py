"""Figures that only rules need."""

from __future__ import annotations

from .files import Cited, Fact, Keys, Value, Values


class Length(Cited, frozen=True, kw_only=True):
    min: int
    max: int


class UserName(Length, frozen=True, kw_only=True):
    pattern: str


class Containers(Cited, frozen=True, kw_only=True):
    installed_by_project: tuple[str, ...]


class SinceRelease(Cited, frozen=True, kw_only=True):
    release: str


class TagNames(Cited, frozen=True, kw_only=True):
    forbidden_characters: str
    reserved_prefixes: tuple[str, ...]


class ReservedNames(Cited, frozen=True, kw_only=True):
    anywhere: tuple[str, ...]
    at_the_start: tuple[str, ...]
    as_a_whole: tuple[str, ...]


class SshKeys(Cited, frozen=True, kw_only=True):
    azure_types: tuple[str, ...]
    known_types: tuple[str, ...]
    min_rsa_bits: int


class AddressRanges(Cited, frozen=True, kw_only=True):
    refused: dict[str, str]


class Server(Cited, frozen=True, kw_only=True):
    memory_gib: int
    vcpus: int


class Paths(Cited, frozen=True, kw_only=True):
    paths: tuple[str, ...]


class Lustre(Cited, frozen=True, kw_only=True):
    client_os: tuple[str, ...]
    client_os_arm64: tuple[str, ...]
    client_source: str
    large_tib: int
    large_note: str


class MySqlNames(Cited, frozen=True, kw_only=True):
    database_max: int
    user_max: int
    users_refused: tuple[str, ...]


class HealthValue(Fact, frozen=True, kw_only=True):
    kind: str
    min: int = 0
    max: int = 0
    values: tuple[str, ...] = ()


class TrustedLaunch(Cited, frozen=True, kw_only=True):
    sizes_without: tuple[str, ...]


class RuleFigures(Fact, frozen=True, kw_only=True):
    admin_user_name: UserName
    admin_user_names_refused_by_azure: Values[tuple[str, ...]]
    admin_user_names_of_services: Values[tuple[str, ...]]
    cluster_name: Length
    containers: Containers
    deployment_name: Length
    reserved_partition_names: Values[dict[str, str]]
    standard_public_addresses: SinceRelease
    tag_names: TagNames
    reserved_resource_names: ReservedNames
    ssh_keys: SshKeys
    address_ranges: AddressRanges
    blob_dns_suffix: Values[dict[str, str]]
    server: Server
    mount_points_below: Paths
    lustre: Lustre
    builtin_nfs_nodes: Value[int]
    mysql: MySqlNames
    monitoring_hosts: Values[dict[str, str]]
    built_in_projects: Values[dict[str, str]]
    owned_attributes: Keys[dict[str, str]]
    slurm_keys_with_own_setting: Keys[dict[str, str]]
    health_values: Keys[dict[str, HealthValue]]
    project_attributes: Keys[tuple[str, ...]]
    trusted_launch: TrustedLaunch
