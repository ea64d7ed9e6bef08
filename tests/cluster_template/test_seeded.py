"""Mistakes that people make, each put into a good template by one change: the rule and the line are found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from generator.cctemplate.files import check_files
from tests.cluster_template import own
from tests.cluster_template.test_checks import GOOD as SLURM

PBS, FILER = own.PBS, own.FILER


@dataclass(frozen=True)
class Mistake:
    """`old` becomes `new`; the problem is in the line of `new`, or `below` lines further down."""

    rule_id: str
    template: str
    old: str
    new: str
    below: int = 0
    hint: str | None = None


MISTAKES = [
    # the file
    Mistake("E2002", PBS, "[[node server]]", "[[node server]"),
    Mistake("E2002", PBS, "[cluster Queue]", "[cluster Queue"),
    Mistake("E2001", PBS, "    MachineType = $ServerType", "    MachineType $ServerType"),
    Mistake("E2001", PBS, "\n'''\n", "\n''' and more\n", below=1),
    Mistake("E2003", FILER, "[[node filer]]\n", "", below=7),
    Mistake("E2004", PBS, "# A PBS cluster", "Autoscale = true # A PBS cluster"),
    Mistake("E2005", PBS, 'Package in {"cycle.image.ubuntu22", ', 'Package in {"cycle.image.ubuntu22, '),
    Mistake("E2005", PBS, "${ifThenElse(UseIdentity, Identity, undefined)}", "${ifThenElse(UseIdentity, Identity, }"),
    Mistake("E2006", PBS, "/etc/motd\n'''\n", "/etc/motd\n", below=-1),
    # sections and attributes
    Mistake("E2101", PBS, "[[[volume boot]]]", "[[[volumes boot]]]", hint="did you mean 'volume'?"),
    Mistake("E2101", PBS, "[[nodearray execute]]", "[[nodarray execute]]", hint="did you mean 'nodearray'?"),
    Mistake("E2102", PBS, "[[[volume boot]]]", "[[[node boot]]]"),
    Mistake("E2103", PBS, "[[nodearray execute]]", "[[nodearray Base]]"),
    Mistake("E2104", FILER, "[cluster Filer]", "[environment Filer]"),
    Mistake("E2106", PBS, "MaxCoreCount = ", "MaxCoresCount = ", hint="did you mean 'MaxCoreCount'?"),
    Mistake("E2106", PBS, "IsReturnProxy", "IsReturnPoxy", hint="did you mean 'IsReturnProxy'?"),
    Mistake("E2106", FILER, "StorageAccountType", "StorageAcountType", hint="did you mean 'StorageAccountType'?"),
    Mistake("E2106", FILER, "mountpoint = ", "mountpiont = ", hint="did you mean 'mountpoint'?"),
    Mistake("E2106", PBS, "Config.IntegerOnly = true\n\n        [[[parameter Auto", "Config.IntegerOny = true\n\n"
            "        [[[parameter Auto", hint="did you mean 'Config.IntegerOnly'?"),
    Mistake("W2107", PBS, "ShutdownPolicy = terminate", "Colour = blue"),
    Mistake("W2107", SLURM, "slurm.default_partition", "slurm.defualt_partition",
            hint="did you mean 'slurm.default_partition'?"),
    Mistake("E2108", PBS, "pbspro.version = 22", "MachineType = Standard_D2s_v5",
            hint="move it out of [[[configuration]]]"),
    Mistake("E2108", SLURM, "MaxCount = $MaxNodes", "slurm.role = $MaxNodes",
            hint="move it into [[[configuration]]]"),
    Mistake("E2109", PBS, "    Interruptible = false", "    Interruptible = false\n    interruptible = true", below=1),
    Mistake("E2110", PBS, "strcat(ClusterName", "strcta(ClusterName", hint="did you mean 'strcat'?"),
    # parameters
    Mistake("E2201", PBS, "[[[parameter PublicServer]]]", "[[[parameter SubnetId]]]"),
    Mistake("E2202", PBS, "MachineType = $ExecuteType", "MachineType = $ExecuteTyp",
            hint="did you mean 'ExecuteType'?"),
    Mistake("E2202", PBS, "UseIdentity isnt true", "UseIdentty isnt true", hint="did you mean 'UseIdentity'?"),
    Mistake("W2203", PBS, "    MaxCoreCount = $MaxCores\n", "", below=34),
    Mistake("E2209", PBS, "ParameterType = Azure.Subnet", "ParameterType = Azure.Subnets",
            hint="did you mean 'Azure.Subnet'?"),
    Mistake("E2210", PBS, "pico.form.BooleanCheckBox", "pico.form.BoolenCheckBox",
            hint="did you mean 'pico.form.BooleanCheckBox'?"),
    Mistake("E2211", PBS, "DefaultValue = 1200", "DefaultValue = 0"),
    Mistake("E2211", PBS, "DefaultValue = false\n\n[parameters Adv", "DefaultValue = no\n\n[parameters Adv"),
    Mistake("W2212", PBS, "[[[parameter BootSize]]]", "[[[parameter BootSize]]]\n        Config.MinValue = 300\n"
            "        Config.MaxValue = 30"),
    # nodes
    Mistake("E2301", PBS, "Extends = base", "Extends = bsae", hint="did you mean 'base'?"),
    Mistake("E2302", PBS, "    Abstract = true", "    Extends = execute\n    Abstract = true"),
    Mistake("E2303", FILER, "SubnetId = group/network/storage\n", "", below=-2),
    Mistake("E2303", FILER, "Azure.Sku = 8-gen2\n", "", below=-6),
    Mistake("W2304", PBS, "[[nodearray execute]]", "[[nodearray execute_hb]]"),
    Mistake("E2305", PBS, "cyclecloud/pbspro:server", "cyclecloud/pbspro:sever",
            hint="did you mean cyclecloud/pbspro:server?"),
    Mistake("E2305", FILER, "cyclecloud/nfs:default:1.2.1", "cyclecloud/nfs"),
    Mistake("W2306", PBS, "tools:execute:1.2.0", "tools:execute"),
    Mistake("W2307", PBS, "cyclecloud/pbspro:execute", "cyclecloud/pbspro:execute:2.0.25"),
    Mistake("W2308", PBS, "cyclecloud/pbspro:execute", "cyclecloud/raytracer:execute"),
    Mistake("E2309", PBS, "Azure.MaxScalesetSize = 100", "Azure.MaxScalesetSize = 5000"),
    Mistake("E2309", PBS, "    Interruptible = false", "    Interruptible = never"),
    Mistake("E2309", FILER, "Size = 1024", "Size = 1 TB"),
    Mistake("E2309", PBS, "PrivatePort = 8652", "PrivatePort = 86520"),
    Mistake("W2310", FILER, "type = nfs", "type = nsf"),
    # Slurm
    Mistake("W2401", SLURM, "[[node scheduler]]\n    MachineType = Standard_D4as_v5\n        [[[configuration]]]\n"
            "        slurm.role = scheduler\n", "[[node scheduler]]\n    MachineType = Standard_D4as_v5\n"),
    Mistake("W2403", SLURM, "        slurm.hpc = true\n", "", below=-7),
    Mistake("E2404", SLURM, "slurm.hpc = true\n", "slurm.hpc = true\n        autoscale.is_hpc = false\n",
            below=-7),
    Mistake("E2406", SLURM, "slurm.partition = htc", "slurm.partition = hpc", below=-4),
    Mistake("W2407", SLURM, "slurm.partition = htc", "slurm.partition = htc\n        slurm.default_partition = true",
            below=-4),
]  # fmt: skip


@pytest.mark.parametrize("text", [PBS, FILER, SLURM], ids=["pbs", "filer", "slurm"])
def test_the_good_templates_are_silent(text: str) -> None:
    (checked,) = check_files(("good.txt", text.encode()))

    assert checked.is_understood
    assert [problem.message for problem in checked.problems] == []


def test_there_are_many_and_most_rules_are_among_them() -> None:
    assert len(MISTAKES) >= 50
    assert len({mistake.rule_id for mistake in MISTAKES}) >= 30


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake.rule_id}:{mistake.new.strip()[:30]}")
def test_a_seeded_mistake_is_found_at_its_line(mistake: Mistake) -> None:
    assert mistake.template.count(mistake.old) >= 1
    text = mistake.template.replace(mistake.old, mistake.new, 1)
    line = mistake.template[: mistake.template.index(mistake.old)].count("\n") + 1 + mistake.below

    (checked,) = check_files(("bad.txt", text.encode()))

    found = [(problem.rule_id, problem.place.line if problem.place else 0) for problem in checked.problems]
    assert (mistake.rule_id, line) in found
    if mistake.hint is not None:
        assert mistake.hint in [problem.hint for problem in checked.problems if problem.rule_id == mistake.rule_id]
    for problem in checked.problems:
        assert problem.place is not None
        assert 1 <= problem.place.column < problem.place.end_column
        assert problem.place.end_column <= len(text.split("\n")[problem.place.line - 1]) + 2


def test_all_mistakes_of_a_file_are_reported_in_one_run() -> None:
    text = PBS
    for mistake in (each for each in MISTAKES if each.template is PBS and each.rule_id in ("E2106", "E2202", "E2309")):
        text = text.replace(mistake.old, mistake.new, 1)
    text = text.replace("    [[node server]]", "    [[node server]").replace(
        "    Region = $Region", "    Region $Region"
    )

    (checked,) = check_files(("bad.txt", text.encode()))

    ids = [problem.rule_id for problem in checked.problems]
    assert {"E2001", "E2002", "E2106", "E2202", "E2309"} <= set(ids)
    assert ids.count("E2106") == 3
    assert not checked.is_understood
