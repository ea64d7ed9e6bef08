"""Every kind of finding has a bad case here, made from one good template by one change."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from generator.cctemplate.checks import check
from generator.cctemplate.evaluate import Value
from generator.cctemplate.findings import KINDS, Finding
from generator.cctemplate.syntax import parse

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
    """Replace `old` by `new` in the good template, or set parameter values; expect `kind` with words in the message."""

    kind: str
    old: str = ""
    new: str = ""
    words: str = ""
    hint: str | None = None
    values: dict[str, Value] = field(default_factory=dict)
    late: frozenset[str] = frozenset({"SubnetId"})


DEMO = "[cluster Demo]\n"
HPC = "slurm.hpc = true\n"
BAD = [
    Bad("unknown-section", "[[[configuration cyclecloud", "[[[configuraton cyclecloud", "'configuraton'",
        "did you mean 'configuration'?"),
    Bad("unknown-section", "[parameters Settings]", "[nonsense]\n[parameters Settings]", "'nonsense'"),
    Bad("misplaced-section", "    [[node scheduler]]", "    [[volume boot]]\n    [[node scheduler]]",
        "'volume boot' lies in [cluster], but belongs into [node] or [nodearray]"),
    Bad("misplaced-section", "[parameters Settings]", "[node x]\n[parameters Settings]", "the top of the file"),
    Bad("duplicate-section", "    [[nodearray htc]]", "    [[node HPC]]\n    [[nodearray htc]]", "in line 24"),
    Bad("cluster-count", DEMO, "[cluster Other]\n[cluster Demo]\n", "2 [cluster]"),
    Bad("unknown-attribute", "MaxCount =", "MaxCuont =", "no attribute 'MaxCuont'", "did you mean 'MaxCount'?"),
    Bad("unknown-attribute", "slurm.default_partition", "slurm.defualt_partition", "'slurm.defualt_partition'",
        "did you mean 'slurm.default_partition'?"),
    Bad("unknown-attribute", "type = nfs", "typ = nfs", "'cyclecloud.mounts.data.typ'", "did you mean 'type'?"),
    Bad("unknown-attribute", "site.anything = goes", "cyclecloud.healthagent.disabel = true",
        hint="did you mean 'cyclecloud.healthagent.disable'?"),
    Bad("unknown-attribute", "Config.IntegerOnly", "Config.IntegersOnly", "parameter 'MaxNodes'"),
    Bad("misplaced-attribute", "slurm.version = 25.11.5", "Azure.Identities = $Identity", "node attribute",
        "move it out of [[[configuration]]]"),
    Bad("misplaced-attribute", "MaxCount = $MaxNodes", "MaxCount = $MaxNodes\n    slurm.role = execute",
        "configuration key", "move it into [[[configuration]]]"),
    Bad("duplicate-attribute", "Autoscale = true", "Autoscale = true\nautoscale = false", "'autoscale'"),
    Bad("duplicate-attribute", "[[[configuration cyclecloud.mounts.data]]]",
        "[[[configuration slurm]]]\n        hpc = false\n        [[[configuration cyclecloud.mounts.data]]]",
        "'slurm.hpc'"),
    Bad("unknown-function", '${Size == "x"}', "${ifThenEsle(Size, true, false)}", "'ifThenEsle'",
        "did you mean 'ifthenelse'?"),
    Bad("duplicate-parameter", "        [[[parameter Advanced]]]", "        [[[parameter Size]]]\n"
        "        [[[parameter Advanced]]]", "'Size'"),
    Bad("undeclared-parameter", "MachineType = $Size\n    MaxCount", "MachineType = $Sizes\n    MaxCount", "'Sizes'",
        "did you mean 'Size'?"),
    Bad("undeclared-parameter", "!Advanced", "!Advancd", "'Advancd'"),
    Bad("undeclared-parameter", "Autoscale = true", "Autoscale = ${ClusterName}-$Nobody", "'Nobody'"),
    Bad("unused-parameter", "        [[[parameter About]]]",
        "        [[[parameter Left]]]\n        [[[parameter About]]]", "'Left'"),
    Bad("unknown-value", values={"MaxNode": 1}, words="'MaxNode'", hint="did you mean 'MaxNodes'?"),
    Bad("missing-value", late=frozenset(), words="'SubnetId'"),
    Bad("value-type", values={"MaxNodes": "100"}, words="a whole number"),
    Bad("value-type", values={"MaxNodes": 1.5}, words="a whole number"),
    Bad("value-type", values={"MaxNodes": True}, words="a whole number"),
    Bad("value-type", values={"Advanced": "true"}, words="true or false"),
    Bad("value-type", values={"Size": 4}, words="text"),
    Bad("value-type", "ParameterType = Boolean", "ParameterType = Record", "a record"),
    Bad("value-type", "Config.IntegerOnly = true", "Config.MinValue = 0", "a number", values={"MaxNodes": "x"}),
    Bad("secret-value", "ParameterType = Boolean", "ParameterType = Password", "'Advanced'"),
    Bad("late-value", late=frozenset({"SubnetId", "Nobody"}), words="not declared"),
    Bad("late-value", values={"SubnetId": "rg/net/subnet"}, words="has a value"),
    Bad("unknown-base", "Extends = base", "Extends = bsae", "'bsae'", "did you mean 'base'?"),
    Bad("circular-base", "    Abstract = true", "    Abstract = true\n    Extends = hpc",
        "'base' inherits from itself"),
    Bad("circular-base", "Extends = base\n    MachineType = $Size\n        [", "Extends = htc\n"
        "    MachineType = $Size\n        [", "'htc'"),
    Bad("missing-attribute", "    MachineType = Standard_D4as_v5\n", "", "'scheduler' has no MachineType"),
    Bad("missing-attribute", "    ImageName = cycle.image.ubuntu24\n", "    Azure.Publisher = x\n", "no ImageName"),
    Bad("missing-attribute", "    Credentials = azure\n", "    Credentials := undefined\n", "no Credentials"),
    Bad("node-name", "[[nodearray htc]]", "[[nodearray ht_c]]", "'ht_c'"),
    Bad("missing-role", "slurm.role = scheduler", "site.role = scheduler", "'scheduler'"),
    Bad("missing-spec", "        [[[cluster-init cyclecloud/slurm:execute]]]\n", "", "cyclecloud/slurm:execute"),
    Bad("missing-spec", "        [[[cluster-init cyclecloud/slurm:default]]]\n", "", "cyclecloud/slurm:default"),
    Bad("missing-hpc", HPC, "", "'hpc'"),
    Bad("contradicting-hpc", HPC, HPC + "        autoscale.is_hpc = false\n", "'hpc'"),
    Bad("hidden-partition", HPC, HPC + "        autoscale.enabled = false\n", "autoscale.enabled"),
    Bad("hidden-partition", HPC, HPC + "        slurm.autoscale = ${Advanced isnt true}\n", "slurm.autoscale"),
    Bad("shared-partition", "slurm.partition = htc", "slurm.partition = hpc", "'hpc' and 'htc'"),
    Bad("default-partition", "        slurm.default_partition = true\n", "", "no partition is"),
    Bad("default-partition", "slurm.partition = htc", "slurm.partition = htc\n        slurm.default_partition = true",
        "'hpc', 'htc' is"),
    Bad("scale-set-size", values={"MaxNodes": 101}, words="101 nodes", hint="raise Azure.MaxScalesetSize to 101"),
    Bad("scale-set-size", "    Azure.MaxScalesetSize = 100\n", "", "only 40"),
    Bad("unknown-project", "nvme:default:1.0.0", "nvme:default:1.0.1", "'nvme:default:1.0.1'",
        "did you mean 'nvme:default:1.0.0'?"),
    Bad("unknown-project", "nvme:default:1.0.0", "nvme", "names no project"),
    Bad("unknown-project", "cyclecloud/slurm:scheduler", "cyclecloud/slurm:shceduler",
        hint="did you mean cyclecloud/slurm:scheduler?"),
    Bad("missing-version", "nvme:default:1.0.0", "nvme:default", "'nvme:default'"),
    Bad("mixed-versions", "cyclecloud/slurm:execute", "cyclecloud/slurm:execute:4.0.9", "none, '4.0.9'"),
]  # fmt: skip


def findings(bad: Bad) -> tuple[Finding, ...]:
    """What the checks say of a bad case."""
    assert bad.old in GOOD
    text = GOOD.replace(bad.old, bad.new, 1) if bad.old else GOOD
    return check(parse(text), values=VALUES | bad.values, late=bad.late, specs=SPECS)


def test_the_good_template_is_silent() -> None:
    assert check(parse(GOOD), values=VALUES, late={"SubnetId"}, specs=SPECS) == ()
    assert check(parse(GOOD)) == ()


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.kind}:{bad.new.strip()[:30]}{[*bad.values] or ''}")
def test_each_bad_case_is_found(bad: Bad) -> None:
    of_kind = [finding for finding in findings(bad) if finding.kind == bad.kind]
    assert of_kind, findings(bad)
    assert any(bad.words in finding.message for finding in of_kind), of_kind
    if bad.hint is not None:
        assert bad.hint in [finding.hint for finding in of_kind]


def test_every_kind_has_a_bad_case() -> None:
    assert {bad.kind for bad in BAD} == set(KINDS)


def test_findings_name_their_lines_and_are_sorted() -> None:
    text = GOOD.replace("MaxCount = $MaxNodes", "MaxCuont = 1").replace("Autoscale = true", "Autoscal = true")
    found = check(parse(text))
    lines = text.split("\n")
    unused = lines.index("        [[[parameter MaxNodes]]]") + 1
    assert [(finding.kind, finding.line) for finding in found] == [
        ("unknown-attribute", lines.index("Autoscal = true") + 1),
        ("unknown-attribute", lines.index("    MaxCuont = 1") + 1),
        ("unused-parameter", unused),
    ]
    assert str(found[0]).startswith("line 2: cluster 'Demo' has no attribute 'Autoscal' [unknown-attribute]; did you")


def test_a_finding_has_a_known_kind() -> None:
    with pytest.raises(ValueError, match="nonsense"):
        Finding("nonsense", 1, "")


def test_a_required_parameter_may_rely_on_its_default() -> None:
    text = GOOD.replace("        Required = true\n", "        Required = true\n        DefaultValue = a/b/c\n")
    values = {name: value for name, value in VALUES.items() if name != "SubnetId"}
    assert check(parse(text), values=values) == ()


def test_a_reference_may_be_spelt_out_in_attributes() -> None:
    long = "[[[cluster-init mine]]]\n        Project = nvme\n        Spec = default\n        Version = "
    good = GOOD.replace("[[[cluster-init nvme:default:1.0.0]]]", long + "1.0.0")
    bad = GOOD.replace("[[[cluster-init nvme:default:1.0.0]]]", long + "2.0.0")
    assert check(parse(good), specs=SPECS) == ()
    assert [finding.kind for finding in check(parse(bad), specs=SPECS)] == ["unknown-project"]


def test_an_array_with_a_dynamic_feature_may_share_its_partition() -> None:
    text = GOOD.replace("slurm.partition = htc", 'slurm.partition = hpc\n        slurm.dynamic_feature := "dyn"')
    assert check(parse(text)) == ()
