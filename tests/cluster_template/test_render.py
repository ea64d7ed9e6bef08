"""The rendered template: complete, without findings, and with the meaning that the plan has."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from generator.cctemplate.values import known_value
from generator.plan.assignment import SpecRef
from generator.plan.deployment import Plan
from generator.render.cluster_template import late_parameters, render
from tests.bed.difference import shown
from tests.bed.parts import lustre, minimal, mount, node_array
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.plans import ALL, ENDPOINT, containers, gpu, high_availability, spot
from tests.cluster_template.rendered import Rendered, read

each_plan = pytest.mark.parametrize("make", ALL.values(), ids=ALL.keys())
CREATED = ("scheduler", "scheduler-ha", "login")


def with_arrays(*names: str, **changes: object) -> Plan:
    """The minimal plan with other partitions; the first is the default."""
    base = minimal()
    arrays = tuple(node_array(name, None, is_default=name == names[0], **changes) for name in names)
    return replace(base, slurm=replace(slurm_of(base), node_arrays=arrays))


# ---------------------------------------------------------------- whole files


@each_plan
def test_the_template_as_a_whole(make: Callable[[], Plan], snapshot: SnapshotAssertion) -> None:
    """The smallest one whole, the others as what differs from it."""
    files, smallest = render(make()), {path.suffix: file for path, file in render(minimal()).items()}
    assert [str(path) for path in files] == [
        f"cluster/{slurm_of(make()).cluster_name}.txt",
        f"cluster/{slurm_of(make()).cluster_name}.params.json",
    ]
    for path, file in files.items():
        assert not file.executable
        base = smallest[path.suffix].content.decode()
        assert shown(file.content.decode(), base) == snapshot(name=path.suffix)


@each_plan
def test_the_checks_find_nothing(make: Callable[[], Plan]) -> None:
    assert read(make()).findings == ()


@each_plan
def test_the_layout_is_tidy(make: Callable[[], Plan]) -> None:
    text = read(make()).text
    assert text.startswith("# Slurm cluster ")
    assert "\n\n\n" not in text
    assert "\t" not in text
    assert not [line for line in text.split("\n") if line != line.rstrip()]
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@each_plan
def test_every_section_is_preceded_by_a_blank_line_where_its_rank_says_so(make: Callable[[], Plan]) -> None:
    lines = read(make()).text.split("\n")
    for before, line in pairwise(lines):
        if line.strip().startswith("[") and "[[[cluster-init" not in line:
            assert before == "", line


@each_plan
def test_parameters_of_both_files_are_the_same(make: Callable[[], Plan]) -> None:
    rendered = read(make())
    assert [section.name for section in rendered.template.parameters] == list(rendered.values)


# ---------------------------------------------------------------- what is known later


def test_late_values_are_null_and_secrets_stand_nowhere() -> None:
    rendered = read(gpu())
    late = late_parameters(gpu())
    assert late == {
        "SubnetId": "subnetId",
        "NFSAddress": "homeAddress",
        "DataMountAddress": "dataAddress",
        "ManagedIdentity": "lockerIdentityId",
        "configuration_slurm_accounting_url": "databaseHost",
        "configuration_slurm_accounting_password": "secret:databasePassword",
        "configuration_identity_client_id": "lockerIdentityClientId",
    }
    assert [rendered.values[name] for name in late] == [None] * len(late)
    (password,) = (p for p in rendered.template.parameters if p.name.endswith("accounting_password"))
    assert password.attribute("DefaultValue") is None


def test_nothing_is_late_that_the_plan_knows() -> None:
    assert late_parameters(high_availability()) == {
        "SubnetId": "subnetId",
        "ManagedIdentity": "lockerIdentityId",
        "configuration_identity_client_id": "lockerIdentityClientId",
    }


def test_an_existing_database_has_its_host_in_the_file_and_its_password_not() -> None:
    plan = gpu()
    accounting = slurm_of(plan).accounting
    assert accounting is not None
    existing = replace(accounting, is_new=False, host="mysql.example.com")
    plan = replace(plan, slurm=replace(slurm_of(plan), accounting=existing))
    rendered = read(plan)
    assert rendered.configuration("htc", "slurm.accounting.url") == "mysql.example.com"
    assert "configuration_slurm_accounting_url" not in late_parameters(plan)
    assert late_parameters(plan)["configuration_slurm_accounting_password"] == "secret:databasePassword"


# ---------------------------------------------------------------- nodes


@each_plan
def test_every_node_has_identity_tags_network_and_image(make: Callable[[], Plan]) -> None:
    plan = make()
    rendered = read(plan, ManagedIdentity="/ids/node", SubnetId="rg/net/compute")
    for node in (*CREATED, *(array.name for array in slurm_of(plan).node_arrays)):
        assert rendered.attribute(node, "Azure.Identities") == "/ids/node"
        assert rendered.attribute(node, "SubnetId") == "rg/net/compute"
        assert rendered.attribute(node, "Tags") == dict(plan.tags)
        assert rendered.attribute(node, "Credentials") == "azure"
        assert rendered.attribute(node, "Locker") == "azure-storage"
        assert rendered.attribute(node, "Region") == plan.location
        assert rendered.attribute(node, "UsePublicNetwork") is False
        assert rendered.attribute(node, "ImageName")


def test_a_partition_gets_what_the_plan_says() -> None:
    rendered = read(gpu())
    assert {
        name: rendered.attribute("hpc", name)
        for name in ("MachineType", "ImageName", "MaxCount", "Azure.MaxScalesetSize", "Zone", "Interruptible",
                     "MaxPrice", "EnableNodeHealthChecks")
    } == {
        "MachineType": "Standard_ND96amsr_A100_v4", "ImageName": "microsoft-dsvm:ubuntu-hpc:2204:latest",
        "MaxCount": 128, "Azure.MaxScalesetSize": 128, "Zone": ["1"], "Interruptible": False, "MaxPrice": -1,
        "EnableNodeHealthChecks": True,
    }  # fmt: skip
    assert {
        key: rendered.configuration("hpc", key)
        for key in ("slurm.role", "slurm.partition", "slurm.hpc", "slurm.default_partition", "slurm.use_pcpu",
                    "slurm.dampen_memory", "slurm.autoscale", "slurm.node_prefix", "site.note",
                    "cycleforge.nvme.mount_point")
    } == {
        "slurm.role": "execute", "slurm.partition": "hpc", "slurm.hpc": True, "slurm.default_partition": False,
        "slurm.use_pcpu": True, "slurm.dampen_memory": 5, "slurm.autoscale": True, "slurm.node_prefix": "llm-",
        "site.note": 'costs $5 "a day"', "cycleforge.nvme.mount_point": "/nvme",
    }  # fmt: skip
    assert rendered.attribute("htc", "Zone") is None
    assert rendered.attribute("htc", "EnableNodeHealthChecks") is None
    assert rendered.configuration("htc", "slurm.hpc") is False
    assert rendered.configuration("htc", "slurm.default_partition") is True


def test_os_disks() -> None:
    rendered = read(gpu())
    assert rendered.volumes("hpc") == {"boot": {"Size": 256, "SSD": True}}
    assert rendered.volumes("scheduler")["boot"] == {"Size": 128, "SSD": True}
    assert rendered.volumes("htc") == {}
    assert rendered.volumes("defaults") == {"boot": {"Size": None, "SSD": True}}


def test_spot() -> None:
    rendered = read(spot())
    assert [rendered.attribute("htc", name) for name in ("Interruptible", "MaxPrice")] == [True, 0.75]
    assert [rendered.attribute("low-cost", name) for name in ("Interruptible", "MaxPrice")] == [True, -1]


def test_login_nodes() -> None:
    rendered = read(gpu())
    assert [rendered.attribute("login", name) for name in ("InitialCount", "MaxCount")] == [2, 4]
    assert rendered.configuration("login", "slurm.role") == "login"
    assert rendered.configuration("login", "autoscale.enabled") is False


def test_specs_run_in_the_order_of_the_plan_after_the_built_in_ones() -> None:
    specs = tuple(reversed(slurm_of(gpu()).node_arrays[0].specs))
    assert len(specs) > 2
    shuffled = with_arrays("htc", specs=specs)
    assert [spec.key for spec in read(shuffled).nodes["htc"].specs] == [
        "cyclecloud/healthagent:default",
        "cyclecloud/monitoring:default",
        "cyclecloud/slurm:default",
        "cyclecloud/slurm:execute",
        *(spec.key for spec in sorted(specs, key=lambda spec: spec.order)),
    ]


@each_plan
def test_each_role_has_its_specs(make: Callable[[], Plan]) -> None:
    plan = make()
    rendered = read(plan)
    roles: dict[str, tuple[SpecRef, ...]] = {
        "scheduler": slurm_of(plan).scheduler.specs,
        "scheduler-ha": slurm_of(plan).scheduler.specs,
        "login": slurm_of(plan).login.specs,
        **{array.name: array.specs for array in slurm_of(plan).node_arrays},
    }
    for node, specs in roles.items():
        own = [found.key for found in rendered.nodes[node].specs if not found.source]
        assert own == [spec.key for spec in specs]


def test_pinned_references_name_the_version_of_the_slurm_project() -> None:
    versions = {
        (spec.project, spec.version) for node in read(containers()).nodes.values() for spec in node.specs if spec.source
    }
    assert versions == {("slurm", "4.0.9"), ("healthagent", ""), ("monitoring", "")}
    assert ":4.0.9" not in read(minimal()).text


def test_the_scheduler_has_the_name_of_the_plan() -> None:
    assert read(gpu()).attribute("scheduler", "ComputerName") == "llm-scheduler"
    plan = minimal()
    named = replace(
        plan, slurm=replace(slurm_of(plan), scheduler=replace(slurm_of(plan).scheduler, host_name="sched01"))
    )
    assert read(named).attribute("scheduler", "ComputerName") == "sched01"
    spaced = replace(slurm_of(plan), cluster_name="My Lab", config_name="my-lab")
    spaced = replace(spaced, scheduler=replace(slurm_of(plan).scheduler, host_name="my-lab-scheduler"))
    assert read(replace(plan, slurm=spaced)).attribute("scheduler", "ComputerName") == "my-lab-scheduler"
    assert read(gpu()).attribute("scheduler-ha", "ComputerName") is None


def test_high_availability() -> None:
    plain, doubled = read(minimal()), read(high_availability())
    assert [made.attribute("scheduler-ha", "InitialCount") for made in (plain, doubled)] == [0, 1]
    assert [doubled.attribute(node, "Zone") for node in CREATED] == ["1", "2", None]
    assert doubled.configuration("scheduler", "slurm.secondary_scheduler_name") == "scheduler-ha-1"
    assert plain.configuration("scheduler", "slurm.secondary_scheduler_name") is None
    assert doubled.configuration("scheduler-ha", "slurm.is_primary_scheduler") is False
    assert doubled.configuration("scheduler-ha", "slurm.role") == "scheduler"
    assert doubled.volumes("scheduler") == {}


# ---------------------------------------------------------------- Slurm


def test_a_static_pool_keeps_its_partitions() -> None:
    rendered = read(containers())
    assert rendered.values["Autoscale"] is False
    assert str(rendered.values["additional_slurm_config"]).split("\n")[-1] == "SuspendTime=315360000"
    assert rendered.configuration("htc", "slurm.autoscale") is True
    assert rendered.configuration("htc", "autoscale.enabled") is None


def test_lines_for_slurm_conf_keep_their_order() -> None:
    plan = minimal()
    assert len(slurm_of(plan).additional_config) > 1
    assert read(plan).configuration("htc", "slurm.additional.config") == "\n".join(slurm_of(plan).additional_config)
    empty = replace(plan, slurm=replace(slurm_of(plan), additional_config=()))
    assert read(empty).configuration("htc", "slurm.additional.config") is None


def test_health_checks_are_switched_by_both_keys() -> None:
    keys = ("slurm.enable_healthchecks", "cyclecloud.healthagent.disable", "cyclecloud.healthagent.disabled")
    assert [read(containers()).configuration("htc", key) for key in keys] == [False, True, True]
    assert [read(minimal()).configuration("htc", key) for key in keys] == [True, None, None]


def test_accounting_and_monitoring() -> None:
    rendered = read(gpu(), configuration_slurm_accounting_url="db.internal", configuration_identity_client_id="id-1")
    expected = {"enabled": True, "url": "db.internal", "storageloc": "llm_acct_db", "user": "slurmadmin"}
    assert {key: rendered.configuration("scheduler", f"slurm.accounting.{key}") for key in expected} == expected
    assert rendered.configuration("hpc", "cyclecloud.monitoring.enabled") is True
    assert rendered.configuration("hpc", "cyclecloud.monitoring.ingestion_endpoint") == ENDPOINT
    assert rendered.configuration("hpc", "cyclecloud.monitoring.identity_client_id") == "id-1"
    assert read(minimal()).configuration("htc", "cyclecloud.monitoring.enabled") is False
    assert read(minimal()).configuration("htc", "slurm.accounting.enabled") is False


# ---------------------------------------------------------------- mounts


def test_built_in_shares_are_exported_by_the_scheduler_and_mounted_by_the_others() -> None:
    rendered = read(minimal())
    assert rendered.mounts("htc") == rendered.mounts("login") == {
        name: {"type": "nfs", "mountpoint": path, "address": None, "export_path": path, "options": None}
        for name, path in (("nfs_sched", "/sched"), ("nfs_shared", "/shared"))
    }  # fmt: skip
    assert list(rendered.mounts("scheduler")) == ["builtinsched", "builtinshared"]
    volumes = rendered.volumes("scheduler")
    assert {name: (volume["Size"], volume["Mount"]) for name, volume in volumes.items()} == {
        "sched": (30, "builtinsched"),
        "shared": (100, "builtinshared"),
    }
    assert rendered.configuration("scheduler", "cyclecloud.exports.builtinshared.disabled") is False


def test_external_shares_are_mounted_everywhere() -> None:
    rendered = read(high_availability())
    expected = {
        "nfs_sched": {"type": "nfs", "mountpoint": "/sched", "address": "10.0.0.4", "export_path": "/export/sched"},
        "nfs_shared": {"type": "nfs", "mountpoint": "/shared", "address": "10.0.0.4", "export_path": "/export/home"},
    }
    for node in (*CREATED, "htc"):
        found = rendered.mounts(node)
        assert {name: {key: found[name][key] for key in options} for name, options in expected.items()} == expected
        assert found["nfs_shared"]["options"] == "hard"
    assert rendered.configuration("scheduler", "cyclecloud.exports.builtinsched.disabled") is True


def test_lustre_is_mounted_by_its_address_and_gets_notice_of_the_end() -> None:
    rendered = read(gpu(), DataMountAddress="10.50.4.5", NFSAddress="10.50.5.4")
    assert rendered.mounts("hpc")["fs_data"] == {
        "type": "lustre", "mountpoint": "/data", "address": "10.50.4.5", "export_path": "tcp:/lustrefs",
        "options": "noatime,user_xattr",
    }  # fmt: skip
    assert rendered.mounts("scheduler")["nfs_shared"]["address"] == "10.50.5.4"
    assert rendered.attribute("hpc", "EnableTerminateNotification") is True
    assert read(minimal()).attribute("htc", "EnableTerminateNotification") is False


def test_a_folder_of_lustre_can_be_mounted() -> None:
    plan = replace(minimal(), mounts=(replace(lustre(), export_path="/projects"),))
    assert read(plan).mounts("htc")["fs_data"]["export_path"] == "tcp:/lustrefs/projects"


def test_a_mount_below_another_one_comes_after_it() -> None:
    mounts = read(containers()).mounts("htc")
    assert {name: options.get("order") for name, options in mounts.items()} == {
        "nfs_sched": None, "nfs_shared": None, "fs_data": None, "fs_data_cache": 1001
    }  # fmt: skip


def test_an_nfs_mount_without_a_path_is_left_to_cyclecloud() -> None:
    plan = replace(minimal(), mounts=(mount("apps", "/apps", address="10.0.0.9", export_path=None),))
    assert read(plan).mounts("htc")["fs_apps"]["export_path"] is None


def test_containers_reach_our_own_project_as_node_attributes() -> None:
    rendered = read(containers(), configuration_identity_client_id="id-1")
    start = "cycleforge.blobfuse."
    assert rendered.configuration("htc", f"{start}mounts") == "models data-raw"
    assert rendered.configuration("htc", f"{start}data-raw.path") == "/data/raw"
    assert rendered.configuration("htc", f"{start}data-raw.storage_account") == "datasets0001"
    assert rendered.configuration("htc", f"{start}data-raw.container") == "c-raw-data"
    assert rendered.configuration("htc", f"{start}data-raw.options") is None
    assert rendered.configuration("htc", f"{start}data-raw.endpoint") is None
    for name in ("models", "data-raw"):
        assert rendered.configuration("htc", f"{start}{name}.identity_client_id") == "id-1"
    assert not [key for key in read(minimal()).nodes["htc"].configuration if key.startswith(start)]


def test_a_container_at_mounts_does_not_hide_the_list() -> None:
    mounts = "[{path: /mounts, type: blob, storage_account: datasets0001, container: c-models}]"
    rendered = read(plan_from(f"storage: {{mounts: {mounts}}}"), configuration_identity_client_id="id-1")
    assert rendered.configuration("htc", "cycleforge.blobfuse.mounts") == "mounts-"
    assert rendered.configuration("htc", "cycleforge.blobfuse.mounts-.path") == "/mounts"
    assert rendered.configuration("htc", "cycleforge.blobfuse.mounts-.identity_client_id") == "id-1"


def test_containers_of_another_cloud_have_its_endpoint() -> None:
    mounts = "[{path: /models, type: blob, storage_account: datasets0001, container: c-models}]"
    plan = plan_from(f"{{location: usgovvirginia, azure: {{cloud: usgov}}, storage: {{mounts: {mounts}}}}}")
    endpoint = "https://datasets0001.blob.core.usgovcloudapi.net"
    assert read(plan).configuration("htc", "cycleforge.blobfuse.models.endpoint") == endpoint


# ---------------------------------------------------------------- any plan


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.from_regex(r"\A[a-z]{1,8}(\.[a-z_]{1,8}){1,2}\Z"), st.text(st.characters(
    exclude_categories=["Cs"])) | st.booleans() | st.integers(), max_size=4))  # fmt: skip
def test_node_attributes_arrive_as_they_are(attributes: dict[str, str | bool | int]) -> None:
    named = {f"site.{key}": value for key, value in attributes.items()}
    rendered = read(with_arrays("htc", attributes=tuple(sorted(named.items()))))
    assert rendered.findings == ()
    configuration = rendered.nodes["htc"].configuration
    found = {key: known_value(item.value, {}) for key, item in configuration.items() if key.startswith("site.")}
    assert found == named


def seconds(plan: Plan) -> float:
    times = []
    for _ in range(3):
        begin = time.process_time()
        render(plan)
        times.append(time.process_time() - begin)
    return min(times)


def test_the_time_grows_with_the_number_of_partitions_and_no_faster() -> None:
    few, many = (with_arrays(*(f"part-{number}" for number in range(count))) for count in (50, 200))
    rendered: Rendered = read(many)
    assert rendered.findings == ()
    assert len(rendered.nodes) == 200 + 5
    # Four times the partitions: 4 if linear, 16 if quadratic.
    assert seconds(many) < 9 * seconds(few)
