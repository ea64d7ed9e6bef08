"""What each kind of plan puts into main.bicep and main.bicepparam."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from generator.plan.resources import ResourceId, resource_id
from generator.render import bicep
from generator.render.bicep import bicep_literal
from generator.render.cluster_template import late_parameters
from tests.bed.difference import shown
from tests.bed.plans import plan_from, slurm_of
from tests.bicep import variants
from tests.bicep.variants import (
    DIGEST,
    HASH,
    PAYLOAD,
    VARIANTS,
    WITH_DEFAULTS,
    block,
    main_bicep,
    parameters,
)

DATABASE = "network: {address_space: 10.50.0.0/20}\nslurm: {accounting: {type: new}}"
every_variant = pytest.mark.parametrize("name", VARIANTS)


@pytest.mark.parametrize("name", ["minimal", "asked_hub", "everything"])
def test_snapshot(name: str, snapshot: SnapshotAssertion) -> None:
    files = bicep.render(VARIANTS[name](), PAYLOAD, HASH, DIGEST)
    smallest = bicep.render(VARIANTS["minimal"](), PAYLOAD, HASH, DIGEST)
    for path in map(PurePosixPath, ("main.bicep", "main.bicepparam")):
        text, base = (each[path].content.decode() for each in (files, smallest))
        assert shown(text, base) == snapshot(name=str(path))


@every_variant
def test_exactly_the_modules_in_use_are_copied(name: str) -> None:
    files = bicep.render(VARIANTS[name](), PAYLOAD, HASH, DIGEST)
    called = set(re.findall(r"'(modules/.+?)'", files[PurePosixPath("main.bicep")].content.decode()))
    assert called == {str(path) for path in files} - {"main.bicep", "main.bicepparam"}


@every_variant
def test_two_renders_are_equal_and_end_with_a_newline(name: str) -> None:
    first, second = (bicep.render(VARIANTS[name](), PAYLOAD, HASH, DIGEST) for _ in range(2))
    assert first == second
    for file in first.values():
        assert file.content.endswith(b"}\n") or file.content.endswith(b"\n")
        assert b"\r" not in file.content


@every_variant
def test_parameters_and_outputs_are_described(name: str) -> None:
    lines = main_bicep(VARIANTS[name]()).splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("param ", "output ")):
            above = number - 1
            while lines[above].startswith(("@secure()", "@minLength(", "@maxLength(")):
                above -= 1
            assert lines[above].startswith("@description('"), line


@every_variant
def test_the_parameter_file_gives_what_has_no_default(name: str) -> None:
    plan = VARIANTS[name]()
    files = bicep.render(plan, PAYLOAD, HASH, DIGEST)
    required = {key for key, default in parameters(main_bicep(plan)).items() if not default}
    given = dict(
        re.findall(
            r"^param (\w+) = readEnvironmentVariable\('(\w+)'\)$",
            files[PurePosixPath("main.bicepparam")].content.decode(),
            re.MULTILINE,
        )
    )
    assert set(given) == required
    secrets = {item.parameter: item.variable for item in plan.secrets}
    assert given == secrets | {item.parameter: item.variable for item in plan.asked}


@every_variant
def test_no_secret_leaves_the_deployment(name: str) -> None:
    text = main_bicep(VARIANTS[name]())
    for secret in VARIANTS[name]().secrets:
        assert (
            f"@secure()\n@minLength({12 if name == 'everything' and secret.parameter == 'adminPassword' else 8})"
            in text
        )
        for line in text.splitlines():
            if re.search(rf"\b{secret.parameter}\b", line):
                assert re.fullmatch(rf"param {secret.parameter} string|\s+\w+: {secret.parameter}", line), line
    assert not re.search(r"^output .*(password|secret)", text, re.IGNORECASE | re.MULTILINE)


def test_only_the_password_is_asked_for() -> None:
    assert parameters(main_bicep(variants.minimal())) == {"adminPassword": "", **WITH_DEFAULTS}


def test_an_existing_group_is_looked_up_and_never_written() -> None:
    new, existing = (main_bicep(plan()) for plan in (variants.minimal, variants.existing_group))
    assert "tags: tags" in block(new, "resource group ")
    assert block(existing, "resource group ") == (
        "resource group 'Microsoft.Resources/resourceGroups@2025-04-01' existing = {\n  name: resourceGroupName\n}"
    )
    assert "var resourceGroupName = 'research-rg'" in existing


def test_two_deployments_fit_into_one_existing_group() -> None:
    """Neither the names that must be unique nor those of nested deployments, which the server reads, are the same."""
    first = main_bicep(variants.existing_group())
    second = main_bicep(plan_from(variants.EXISTING_GROUP, "name: second"))
    for text in (first, second):
        assert "uniqueString(subscription().subscriptionId, resourceGroupName, '" in text

    def nested(text: str) -> set[str]:
        return set(re.findall(r"(?m)^(?:  name:|var fingerprintRecord =) '([^'$]+)'$", text))

    assert len(nested(first)) > 8
    assert not nested(first) & nested(second)
    assert "name: 'cycleforge-locker'" in main_bicep(variants.minimal())


def test_an_existing_server_is_sent_what_it_was_created_with() -> None:
    """Azure refuses another SSH key and another image: https://github.com/Azure/azure-cli/issues/11840."""
    files = bicep.render(variants.minimal(), PAYLOAD, HASH, DIGEST)
    parameter_file, module = (
        files[PurePosixPath(path)].content.decode() for path in ("main.bicepparam", "modules/server.bicep")
    )
    server = block(main_bicep(variants.minimal()), "module server ")
    assert "sshPublicKey: empty(serverKey) ? sshPublicKey : serverKey" in server
    assert "createdFromVersion: serverImageVersion" in server
    assert "param serverKey = readEnvironmentVariable('CYCLEFORGE_SERVER_KEY', '')" in parameter_file
    assert "param serverImageVersion = readEnvironmentVariable('CYCLEFORGE_SERVER_IMAGE', '')" in parameter_file
    assert "union(image!, empty(createdFromVersion) ? {} : { version: createdFromVersion })" in module
    assert "serverImageVersion" not in main_bicep(variants.own_image())


def test_what_is_absent_is_not_called() -> None:
    text = main_bicep(variants.minimal())
    for module in (
        "jumpbox",
        "netapp-account",
        "netapp-volume",
        "lustre",
        "mysql",
        "peering",
        "roles-monitoring",
        "roles-network",
        "network-existing",
    ):
        assert f"modules/{module}.bicep" not in text
    assert "publicAccess: false" in text
    assert "serverPublicIp" not in text


def test_volumes_get_a_pool_of_whole_tebibytes() -> None:
    text = main_bicep(variants.everything())
    home, numbered = block(text, "module volume0 "), block(text, "module volume1 ")
    assert "poolSizeTib: 4\n" in home
    assert "volumeSizeGib: 4096\n" in home
    assert "exportName: 'minimal-home'" in home
    assert "throughputMibps" not in home
    assert "poolSizeTib: 2\n" in numbered
    assert "volumeSizeGib: 1500\n" in numbered
    assert "throughputMibps: 256" in numbered
    assert "name: 'm-2024'" in numbered
    assert "zone: '2'" in numbered
    for volume in (home, numbered):
        assert "allowedClients: network.outputs.computePrefixes" in volume


def test_addresses_of_created_file_systems_are_facts() -> None:
    facts = block(main_bicep(variants.everything()), "module bootstrap ")
    for line in (
        "homeAddress: volume0.outputs.address",
        "x2024Address: volume1.outputs.address",
        "dataAddress: lustre0.outputs.address",
        "databaseHost: database.outputs.host",
        "databasePassword: databasePassword",
    ):
        assert line in facts


def test_lustre_gets_a_way_out() -> None:
    assert re.search(r"role: 'lustre'\n.*\n.*\n\s+usesNat: true", main_bicep(variants.everything()))


@pytest.mark.parametrize(
    ("sku", "tier"),
    [("Standard_B2ms", "Burstable"), ("Standard_D4ads_v5", "GeneralPurpose"), ("Standard_E8ds_v4", "MemoryOptimized")],
)
def test_database_tier_follows_its_size(sku: str, tier: str) -> None:
    text = main_bicep(plan_from(variants.EVERYTHING, f"slurm: {{accounting: {{sku: {sku}}}}}"))
    assert f"skuTier: '{tier}'" in text


@pytest.mark.parametrize(
    ("cloud", "region", "domain"),
    [
        ("public", "southcentralus", "azure.com"),
        ("usgov", "usgovvirginia", "usgovcloudapi.net"),
        ("china", "chinanorth3", "chinacloudapi.cn"),
    ],
)
def test_database_zone_follows_the_cloud(cloud: str, region: str, domain: str) -> None:
    text = main_bicep(plan_from(DATABASE, f"location: {region}\nazure: {{cloud: {cloud}}}"))
    assert f"zoneName: 'minimal.private.mysql.database.{domain}'" in text


def test_an_existing_database_creates_none_but_passes_its_password() -> None:
    plan = variants.everything()
    accounting = slurm_of(plan).accounting
    assert accounting is not None
    existing = replace(accounting, is_new=False, host="db.example.org")
    text = main_bicep(replace(plan, slurm=replace(slurm_of(plan), accounting=existing)))
    assert "mysql" not in text
    assert "databasePassword: databasePassword" in text
    assert "databaseHost" not in text


def test_monitoring_roles_only_with_monitoring() -> None:
    plan = variants.everything()
    roles = block(main_bicep(plan), "module monitoringRoles ")
    assert "scope: resourceGroup('11111111-2222-3333-4444-555555555555', 'metrics-rg')" in roles
    assert "dataCollectionRuleName: 'cluster'" in roles
    assert "monitoringRoles" not in main_bicep(replace(plan, monitoring=None))


def test_an_own_image_has_no_plan() -> None:
    server = block(main_bicep(variants.own_image()), "module server ")
    assert "imageId: '" in server
    assert "    image:" not in server
    assert "osDiskGb: 128" in server
    assert "dataDiskGb: 256" in server


def test_the_locker_name_is_given_or_unique_and_legal() -> None:
    assert "accountName: 'minimallocker'" in main_bicep(variants.own_image())
    plan = plan_from("name: llm-a100-south-central")
    assert "accountName: 'cfllma100so${unique}'" in main_bicep(plan)
    stem = re.search(r"accountName: '(\w+)\$", main_bicep(plan))
    assert stem is not None
    assert len(stem[1]) + 13 <= 24


def test_quoting_keeps_awkward_tags_as_they_are() -> None:
    assert r"'cost center': 'it\'s \${not} code\\'" in main_bicep(variants.own_image())


def test_first_boot_waits_for_roles_endpoint_and_payload() -> None:
    bootstrap = block(main_bicep(variants.minimal()), "module bootstrap ")
    waits = bootstrap[bootstrap.index("dependsOn") :]
    for symbol in ("roles", "subscriptionRoles", "lockerEndpoint", "payload00", "payload01"):
        assert f"    {symbol}\n" in waits
    assert f"contentHash: '{HASH}-${{bootstrapRun}}'" in bootstrap
    assert f"payloadSha256: '{DIGEST}'" in bootstrap
    assert re.search(r"payloadDeployments: \[\s+'cycleforge-payload-00'\s+'cycleforge-payload-01'\s+\]", bootstrap)


def test_facts_are_the_ones_that_the_server_reads() -> None:
    bootstrap = block(main_bicep(variants.minimal()), "module bootstrap ")
    facts = bootstrap[bootstrap.index("    facts: {") : bootstrap.index("    secrets: {")]
    assert re.findall(r"^ {6}(\w+):", facts, re.MULTILINE) == [
        "subscriptionId", "tenantId", "resourceGroup", "location", "cloud", "armEndpoint", "storageAccount",
        "storageSuffix", "container", "lockerIdentityId", "lockerIdentityClientId", "subnetId", "serverName",
        "sshPublicKey", "payloadDeployments", "payloadSha256", "fingerprintRecord",
    ]  # fmt: skip


WITHOUT_SERVER_OR_CLUSTER = (
    "infrastructure",
    "existing_server",
    "existing_server_behind_a_hub",
    "existing_server_alone",
    "existing_server_with_containers",
)


def test_the_variants_without_server_or_cluster_are_these() -> None:
    """By name, because plans are not made while tests are collected, once in each process."""
    found = [name for name, build in VARIANTS.items() if not (build().server and build().slurm)]
    assert found == list(WITHOUT_SERVER_OR_CLUSTER)


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in WITHOUT_SERVER_OR_CLUSTER])
def test_parameters_that_the_server_fills_have_their_fact(name: str) -> None:
    plan = VARIANTS[name]()
    bootstrap = block(main_bicep(plan), "module bootstrap ")
    given = set(re.findall(r"^ {6}(\w+):", bootstrap, re.MULTILINE))
    wanted = {source.removeprefix("secret:") for source in late_parameters(plan).values()}
    assert wanted <= given
    assert wanted


@pytest.mark.parametrize("name", ["existing_server", "existing_server_behind_a_hub"])
def test_parameters_that_no_server_fills_are_an_output(name: str) -> None:
    plan = VARIANTS[name]()
    text = main_bicep(plan)
    begin = text.index("output clusterParameters object = union(loadJsonContent('cluster/minimal.params.json'), {")
    given = set(re.findall(r"^  (\w+):", text[begin:], re.MULTILINE))
    late = late_parameters(plan)
    assert given == {parameter for parameter, source in late.items() if not source.startswith("secret:")}
    assert "SubnetId" in given


@pytest.mark.parametrize("name", ["existing_server", "existing_server_behind_a_hub", "existing_server_alone"])
def test_an_existing_server_is_left_as_it_is(name: str) -> None:
    files = bicep.render(VARIANTS[name]())
    text = "".join(file.content.decode() for file in files.values())
    for kind in ("Compute/", "Network/networkInterfaces@", "Network/privateEndpoints@", "Network/bastionHosts@"):
        assert f"'Microsoft.{kind}" not in text
    assert "loadFileAsBase64" not in text
    assert "customData" not in text
    modules = {path.stem for path in files if path.parent.name == "modules"}
    assert not modules & {"server", "server-bootstrap", "payload", "jumpbox", "locker", "private-endpoint", "bastion"}
    # Roles on what exists could be there already under another name, which Azure refuses; a new group has none.
    assert not modules & {"roles", "roles-subscription", "roles-network"}


def test_roles_are_assigned_only_where_the_definition_allows_it() -> None:
    def modules(change: str) -> set[str]:
        return {path.stem for path in bicep.render(plan_from(variants.EXISTING_SERVER, change))}

    principal = "server: {existing: {principal_id: 11111111-1111-1111-1111-111111111111}}"
    assert modules("{}") & {"roles-server", "roles-locker"} == {"roles-locker"}
    assert modules(principal) & {"roles-server", "roles-locker"} == {"roles-server", "roles-locker"}
    assert not modules("server: {existing: {assign_locker_role: false}}") & {"roles-server", "roles-locker"}


def test_without_a_cluster_the_deployment_says_what_clusters_need() -> None:
    text = main_bicep(variants.infrastructure())
    outputs = re.findall(r"^output (\w+)", text, re.MULTILINE)
    assert {"nodeIdentityId", "nodeIdentityClientId", "computeSubnet", "homeAddress", "dataAddress"} <= set(outputs)
    assert "clusterName" not in outputs
    assert "modules/server.bicep" in text


def test_resource_ids() -> None:
    assert resource_id(variants.RULE_ID) == ResourceId("11111111-2222-3333-4444-555555555555", "metrics-rg", "cluster")
    for bad in ("", "hub", f"{variants.VNET_ID}/subnets/a", "/subscriptions/x/resourceGroups/y"):
        with pytest.raises(ValueError, match="not the resource id"):
            resource_id(bad)


def test_literals() -> None:
    assert bicep_literal({"a b": [1, True, None, "it's"], "c": {}, "d": []}) == (
        "{\n  'a b': [\n    1\n    true\n    null\n    'it\\'s'\n  ]\n  c: {}\n  d: []\n}"
    )
    with pytest.raises(TypeError):
        bicep_literal(0.5)


def test_an_unfinished_plan_is_refused() -> None:
    plan = variants.everything()
    subnets = tuple(subnet for subnet in plan.network.subnets if subnet.role != "compute")
    with pytest.raises(ValueError, match="compute"):
        main_bicep(replace(plan, network=replace(plan.network, subnets=subnets)))
