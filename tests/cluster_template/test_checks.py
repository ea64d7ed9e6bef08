"""Every kind of finding has a bad case here, made from one good template by one change."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from generator.cctemplate import rules
from generator.cctemplate.checks import check
from generator.cctemplate.values import Value
from generator.problems.problem import Problem
from generator.problems.rule import registered
from tests.cluster_template.rendered import parse

GOOD = """\
[cluster Demo]
Autoscale = true
    [[node defaults]]
    Credentials = azure
    SubnetId = $SubnetId
    ImageName = cycle.image.ubuntu24
    Azure.Identities = $Identity
    tags.team = research
        [[[configuration]]]
        slurm.version = 25.11.5
        site.anything = goes
        [[[cluster-init cyclecloud/slurm:default]]]
    [[node scheduler]]
    MachineType = Standard_D4as_v5
        [[[configuration]]]
        slurm.role = scheduler
        [[[cluster-init cyclecloud/slurm:scheduler]]]
    [[node base]]
    Abstract = true
        [[[configuration]]]
        slurm.role = execute
        slurm.autoscale = true
        [[[cluster-init cyclecloud/slurm:execute]]]
    [[nodearray hpc]]
    Extends = base
    MachineType = $Size
    MaxCount = $MaxNodes
    Azure.MaxScalesetSize = 100
        [[[configuration]]]
        slurm.partition = hpc
        slurm.hpc = true
        slurm.default_partition = true
        [[[configuration cyclecloud.mounts.data]]]
        type = nfs
        [[[cluster-init nvme:default:1.0.0]]]
    [[nodearray htc]]
    Extends = base
    MachineType = $Size
        [[[configuration]]]
        slurm.partition = htc
        slurm.hpc = ${Size == "x"}
[parameters Settings]
    [[parameters All]]
        [[[parameter Size]]]
        ParameterType = Cloud.MachineType
        DefaultValue = Standard_D64ds_v5
        [[[parameter SubnetId]]]
        Required = true
        [[[parameter MaxNodes]]]
        Config.Plugin = pico.form.NumberTextBox
        Config.IntegerOnly = true
        [[[parameter Identity]]]
        ParameterType = Azure.ManagedIdentity
        Conditions.Hidden := !Advanced
        [[[parameter Advanced]]]
        ParameterType = Boolean
        [[[parameter About]]]
        Config.Plugin = pico.widget.HtmlTemplateWidget
"""
VALUES: dict[str, Value] = {"Size": "Standard_D64ds_v5", "SubnetId": None, "MaxNodes": 100, "Advanced": True}
SPECS = frozenset({("nvme", "default", "1.0.0")})


@dataclass(frozen=True)
class Bad:
    """Replace `old` by `new` in the good template, or set parameter values; expect the rule, with words."""

    rule_id: str
    old: str = ""
    new: str = ""
    words: str = ""
    hint: str | None = None
    values: dict[str, Value] = field(default_factory=dict)
    late: frozenset[str] = frozenset({"SubnetId"})


DEMO = "[cluster Demo]\n"
HPC = "slurm.hpc = true\n"
HTC = '        [[[configuration]]]\n        slurm.partition = htc\n        slurm.hpc = ${Size == "x"}\n'
BASE = "        slurm.autoscale = true\n"
NIC = "        [[[network-interface eth0]]]\n        "
BAD = [
    Bad("E2101", "[[[configuration cyclecloud", "[[[configuraton cyclecloud", "'configuraton'",
        "did you mean 'configuration'?"),
    Bad("E2101", "[parameters Settings]", "[nonsense]\n[parameters Settings]", "'nonsense'"),
    Bad("E2102", "    [[node scheduler]]", "    [[volume boot]]\n    [[node scheduler]]",
        "'volume boot' is in [cluster], but belongs in [node] or [nodearray]"),
    Bad("E2102", "[parameters Settings]", "[node x]\n[parameters Settings]", "the top of the file"),
    Bad("E2103", "    [[nodearray htc]]", "    [[node HPC]]\n    [[nodearray htc]]", "in line 24"),
    Bad("W2105", DEMO, "[cluster Other]\n[cluster Demo]\n", "2 [cluster] sections"),
    Bad("E2106", "MaxCount =", "MaxCuont =", "no attribute 'MaxCuont'", "did you mean 'MaxCount'?"),
    Bad("W2107", "slurm.default_partition", "slurm.defualt_partition", "'slurm.defualt_partition'",
        "did you mean 'slurm.default_partition'?"),
    Bad("E2106", "type = nfs", "typ = nfs", "'cyclecloud.mounts.data.typ'", "did you mean 'type'?"),
    Bad("W2107", "site.anything = goes", "cyclecloud.healthagent.disabel = true",
        hint="did you mean 'cyclecloud.healthagent.disable'?"),
    Bad("E2106", "Config.IntegerOnly", "Config.IntegersOnly", "parameter 'MaxNodes'"),
    Bad("E2108", "slurm.version = 25.11.5", "Azure.Identities = $Identity", "node attribute",
        "move it out of [[[configuration]]]"),
    Bad("E2108", "MaxCount = $MaxNodes", "MaxCount = $MaxNodes\n    slurm.role = execute",
        "configuration key", "move it into [[[configuration]]]"),
    Bad("E2109", "Autoscale = true", "Autoscale = true\nautoscale = false", "'autoscale'"),
    Bad("E2109", "[[[configuration cyclecloud.mounts.data]]]",
        "[[[configuration slurm]]]\n        hpc = false\n        [[[configuration cyclecloud.mounts.data]]]",
        "'slurm.hpc'"),
    Bad("E2110", '${Size == "x"}', "${ifThenEsle(Size, true, false)}", "'ifThenEsle'",
        "did you mean 'ifthenelse'?"),
    Bad("E2201", "        [[[parameter Advanced]]]", "        [[[parameter Size]]]\n"
        "        [[[parameter Advanced]]]", "'Size'"),
    Bad("E2202", "MachineType = $Size\n    MaxCount", "MachineType = $Sizes\n    MaxCount", "'Sizes'",
        "did you mean 'Size'?"),
    Bad("E2202", "!Advanced", "!Advancd", "'Advancd'"),
    Bad("E2202", "Autoscale = true", "Autoscale = ${ClusterName}-$Nobody", "'Nobody'"),
    Bad("W2203", "        [[[parameter About]]]",
        "        [[[parameter Left]]]\n        [[[parameter About]]]", "'Left'"),
    Bad("E2204", values={"MaxNode": 1}, words="'MaxNode'", hint="did you mean 'MaxNodes'?"),
    Bad("E2205", late=frozenset(), words="'SubnetId'"),
    Bad("E2206", values={"MaxNodes": "100"}, words="a whole number"),
    Bad("E2206", values={"MaxNodes": 1.5}, words="a whole number"),
    Bad("E2206", values={"MaxNodes": True}, words="a whole number"),
    Bad("E2206", values={"Advanced": "true"}, words="true or false"),
    Bad("E2206", values={"Size": 4}, words="text"),
    Bad("E2206", values={"Size": ["Standard_D64ds_v5"]}, words="is text, not"),
    Bad("E2206", "DefaultValue = Standard", "Config.MultiSelect = true\n        DefaultValue = Standard",
        "text or a list of texts", values={"Size": ["Standard_D64ds_v5", 4]}),
    Bad("E2206", "ParameterType = Boolean", "ParameterType = Record", "a record"),
    Bad("E2206", "Config.IntegerOnly = true", "Config.MinValue = 0", "a number", values={"MaxNodes": "x"}),
    Bad("E2207", "ParameterType = Boolean", "ParameterType = Password", "'Advanced'"),
    Bad("E2208", late=frozenset({"SubnetId", "Nobody"}), words="not declared"),
    Bad("E2208", values={"SubnetId": "rg/net/subnet"}, words="has a value"),
    Bad("E2301", "Extends = base", "Extends = bsae", "'bsae'", "did you mean 'base'?"),
    Bad("E2302", "    Abstract = true", "    Abstract = true\n    Extends = hpc",
        "'base' inherits from itself"),
    Bad("E2302", "Extends = base\n    MachineType = $Size\n        [", "Extends = htc\n"
        "    MachineType = $Size\n        [", "'htc'"),
    Bad("E2303", "    MachineType = Standard_D4as_v5\n", "", "'scheduler' has no MachineType"),
    Bad("E2303", "    ImageName = cycle.image.ubuntu24\n", "    Azure.Publisher = x\n", "no ImageName"),
    Bad("E2303", "    Credentials = azure\n", "    Credentials := undefined\n", "no Credentials"),
    Bad("W2304", "[[nodearray htc]]", "[[nodearray ht_c]]", "'ht_c'"),
    Bad("W2401", "slurm.role = scheduler", "site.role = scheduler", "'scheduler'"),
    Bad("W2402", "        [[[cluster-init cyclecloud/slurm:execute]]]\n", "", "cyclecloud/slurm:execute"),
    Bad("W2402", "        [[[cluster-init cyclecloud/slurm:default]]]\n", "", "cyclecloud/slurm:default"),
    Bad("W2403", HPC, "", "'hpc'"),
    Bad("E2404", HPC, HPC + "        autoscale.is_hpc = false\n", "'hpc'"),
    Bad("W2405", HPC, HPC + "        autoscale.enabled = false\n", "autoscale.enabled"),
    Bad("W2405", HPC, HPC + "        slurm.autoscale = ${Advanced isnt true}\n", "slurm.autoscale"),
    Bad("E2406", "slurm.partition = htc", "slurm.partition = hpc", "'hpc' and 'htc'"),
    Bad("W2407", "        slurm.default_partition = true\n", "", "no partition is"),
    Bad("W2407", "slurm.partition = htc", "slurm.partition = htc\n        slurm.default_partition = true",
        "'hpc', 'htc' is"),
    Bad("W2408", values={"MaxNodes": 101}, words="101 nodes", hint="raise Azure.MaxScalesetSize to 101"),
    Bad("W2408", "    Azure.MaxScalesetSize = 100\n", "", "only 40"),
    Bad("E2305", "nvme:default:1.0.0", "nvme:default:1.0.1", "'nvme:default:1.0.1'",
        "did you mean 'nvme:default:1.0.0'?"),
    Bad("E2305", "nvme:default:1.0.0", "nvme", "names no project"),
    Bad("E2305", "cyclecloud/slurm:scheduler", "cyclecloud/slurm:shceduler",
        hint="did you mean cyclecloud/slurm:scheduler?"),
    Bad("W2306", "nvme:default:1.0.0", "nvme:default", "'nvme:default'"),
    Bad("W2307", "cyclecloud/slurm:execute", "cyclecloud/slurm:execute:4.0.9", "none, '4.0.9'"),
    Bad("E2104", DEMO, "[environment Demo]\n", "no [cluster] section"),
    Bad("W2107", "MaxCount =", "Colour =", "no attribute 'Colour'"),
    Bad("W2111", "        [[[cluster-init nvme:default:1.0.0]]]\n",
        "        [[[cluster-init nvme:default:1.0.0]]]\n        [[[cluster-init nvme:default:1.0.0]]]\n", "in line"),
    Bad("E2209", "ParameterType = Boolean", "ParameterType = Booleen", "'Booleen'", "did you mean 'Boolean'?"),
    Bad("E2210", "pico.form.NumberTextBox", "pico.form.NumberTextbx", "'pico.form.NumberTextbx'"),
    Bad("E2211", "ParameterType = Boolean", "ParameterType = Boolean\n        DefaultValue = yes", "not true or false"),
    Bad("E2211", "Config.IntegerOnly = true", "Config.MaxValue = 5\n        DefaultValue = 6", "at most 5"),
    Bad("E2211", "Config.IntegerOnly = true", "Config.IntegerOnly = true\n        DefaultValue = 1.5", "a whole"),
    Bad("W2212", "Config.IntegerOnly = true", "Config.MinValue = 9\n        Config.MaxValue = 5", "value 9 and"),
    Bad("W2308", "[[[cluster-init nvme:default:1.0.0]]]", "[[[cluster-init cyclecloud/ray:default]]]", "/ray:"),
    Bad("E2305", "cyclecloud/slurm:scheduler", "cyclecloud/slrum:scheduler",
        hint="did you mean cyclecloud/slurm:scheduler?"),
    Bad("E2309", "MaxCount = $MaxNodes", "MaxCount = ten", "a whole number, not 'ten'"),
    Bad("E2309", "MaxCount = $MaxNodes", "MaxCount = -1", "0 to 1000000, not -1"),
    Bad("E2309", "MaxCount = $MaxNodes", "MaxCount = 2\n    InitialCount = 3", "begins with 3 nodes and may have 2"),
    Bad("E2309", "Autoscale = true", "Autoscale = yes", "true or false, not 'yes'"),
    Bad("W2310", "type = nfs", "type = nsf", "unknown type 'nsf'"),
    Bad("E2311", HTC, HTC + NIC + "AssociatePublicIpAddress = true\n",
        "AssociatePublicIpAddress is for single nodes, but the node array 'htc' would get it",
        "Azure.AllocationMethod = StandAlone"),
    Bad("E2311", BASE, BASE + NIC + "AssociatePublicIpAddress = $Advanced\n", "the node arrays 'hpc' and 'htc' would"),
    Bad("E2311", HTC, HTC + NIC + "PrivateIp = 10.0.0.4\n", "PrivateIp is for single nodes"),
    Bad("E2311", HTC, "    Azure.AllocationMethod = standalone\n" + HTC + NIC + "StaticPublicIpAddress = true\n",
        "StaticPublicIpAddress is for single nodes"),
    Bad("E2311", HTC, HTC + NIC + "NetworkInterfaceId = /subscriptions/x\n", "NetworkInterfaceId is for single nodes"),
]  # fmt: skip


def findings(bad: Bad) -> tuple[Problem, ...]:
    assert bad.old in GOOD
    text = GOOD.replace(bad.old, bad.new, 1) if bad.old else GOOD
    return check(parse(text), values=VALUES | bad.values, late=bad.late, specs=SPECS)


def test_the_good_template_is_silent() -> None:
    assert check(parse(GOOD), values=VALUES, late={"SubnetId"}, specs=SPECS) == ()
    assert check(parse(GOOD)) == ()


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.rule_id}:{bad.new.strip()[:30]}{[*bad.values] or ''}")
def test_each_bad_case_is_found(bad: Bad) -> None:
    of_kind = [finding for finding in findings(bad) if finding.rule_id == bad.rule_id]
    assert of_kind, findings(bad)
    assert any(bad.words in finding.message for finding in of_kind), of_kind
    if bad.hint is not None:
        assert bad.hint in [finding.hint for finding in of_kind]


def test_every_rule_about_what_can_be_read_has_a_bad_case() -> None:
    assert rules.TemplateRule.stage == "template"
    expected = {rule.id for rule in registered(["template"]) if rule.id[1:3] != "20"}

    assert {bad.rule_id for bad in BAD} == expected


def test_findings_name_their_lines_and_are_sorted() -> None:
    text = GOOD.replace("MaxCount = $MaxNodes", "MaxCuont = 1").replace("Autoscale = true", "Autoscal = true")
    found = check(parse(text))
    lines = text.split("\n")
    unused = lines.index("        [[[parameter MaxNodes]]]") + 1
    assert [(finding.rule_id, finding.place.line) for finding in found if finding.place] == [
        ("E2106", lines.index("Autoscal = true") + 1),
        ("E2106", lines.index("    MaxCuont = 1") + 1),
        ("W2203", unused),
    ]
    assert found[0].message == "cluster 'Demo' has no attribute 'Autoscal'"


def test_a_required_parameter_may_rely_on_its_default() -> None:
    text = GOOD.replace("        Required = true\n", "        Required = true\n        DefaultValue = a/b/c\n")
    values = {name: value for name, value in VALUES.items() if name != "SubnetId"}
    assert check(parse(text), values=values) == ()


def test_a_reference_may_be_spelt_out_in_attributes() -> None:
    long = "[[[cluster-init mine]]]\n        Project = nvme\n        Spec = default\n        Version = "
    good = GOOD.replace("[[[cluster-init nvme:default:1.0.0]]]", long + "1.0.0")
    bad = GOOD.replace("[[[cluster-init nvme:default:1.0.0]]]", long + "2.0.0")
    assert check(parse(good), specs=SPECS) == ()
    assert [finding.rule_id for finding in check(parse(bad), specs=SPECS)] == ["E2305"]


def test_an_array_with_a_dynamic_feature_may_share_its_partition() -> None:
    text = GOOD.replace("slurm.partition = htc", 'slurm.partition = hpc\n        slurm.dynamic_feature := "dyn"')
    assert check(parse(text)) == ()
