"""Lines of slurm.conf that a definition adds, and their values with which something else no longer works."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .. import catalog
from ..catalog.slurm_facts import Expected, ListKey
from ..definition.model.slurm import Slurm
from ..plan.assignment import GPU_NODE, is_checked, specs_of
from ..plan.policy import partition_setting
from ..plan.slurm_conf import list_key, parameters, slurm_release, slurm_value
from ..problems.problem import Problem
from ..words.counts import listed
from .base import LOGIN, SCHEDULER, ClusterRule, Path, Site, given, meant, near, quoted
from .releases import slurm_version
from .roles import RoleNode, roles

_CONF = "https://slurm.schedmd.com/slurm.conf.html"
_SETTINGS: Path = ("slurm", "settings")
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9]{0,63}")


class OwnedKey(ClusterRule):
    id = "E0901"
    summary = "A key of slurm.conf belongs to CycleCloud."
    why = "cyclecloud-slurm writes it and relies on its value; a second value stops autoscaling or slurmctld."
    fix = "Remove the key; where the definition has a setting of its own for it, the hint names it."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        owned = {name.lower(): (name, reason) for name, reason in catalog.limits().owned_slurm_keys.keys.items()}
        for key in slurm.settings:
            if key.lower() in owned:
                name, reason = owned[key.lower()]
                yield self.problem((*_SETTINGS, key), f"CycleCloud owns {name} of slurm.conf: {reason}", on_key=True)


class KeyWithSetting(ClusterRule):
    id = "E0902"
    summary = "The definition has a setting of its own for this key of slurm.conf."
    why = "Two places for one value: the last line of slurm.conf would win, and it is not visible which one that is."
    fix = "Use the setting that the message names."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        own = {
            name.lower(): (name, setting)
            for name, setting in catalog.rule_figures().slurm_keys_with_own_setting.keys.items()
        }
        for key in slurm.settings:
            if key.lower() in own:
                name, setting = own[key.lower()]
                yield self.problem(
                    (*_SETTINGS, key),
                    f"{name} of slurm.conf is set by {setting}",
                    f"{setting.split('.')[1]}: …",
                    on_key=True,
                )


class UnknownKey(ClusterRule):
    id = "E0935"
    summary = "slurm.conf has no such key."
    why = "slurmctld, slurmd and every command of Slurm end at a key of slurm.conf that they do not know."
    fix = "Correct the key, or remove it where it belongs elsewhere; silence this rule if your own Slurm knows it."
    source = "https://github.com/SchedMD/slurm/blob/slurm-25.11/src/common/read_config.c"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        # E0923 says what is wrong with a key of another release.
        lower = {name.lower() for name in _names_of_conf()}
        release = slurm_release(slurm_version(site, slurm))
        for key in slurm.settings:
            if key.lower() not in lower and _KEY.fullmatch(key):
                name, places = _elsewhere(key)
                if places:
                    text = f"{quoted(key)} is a key of {listed(places)}, not of slurm.conf"
                    own = partition_setting(name)
                    hint = f"partitions: [{{{own}: …}}]" if own else None
                else:
                    more, hint = _near(key, release)
                    text = f"slurm.conf has no key {quoted(key)}{more}"
                yield self.problem((*_SETTINGS, key), text, hint, on_key=True)


def _names_of_conf() -> tuple[str, ...]:
    """Every key that slurm.conf has or had, whoever may set it."""
    owned, by_version = catalog.limits().owned_slurm_keys.keys, catalog.slurm_conf().keys_by_version
    return (*catalog.slurm_keys().slurm_conf.keys, *owned, *by_version.until)


def _near(key: str, release: tuple[int, ...]) -> tuple[str, str | None]:
    """What the nearest name of all places is, and a hint that leads to no further error."""
    names = _names_of_conf()
    elsewhere = catalog.slurm_keys().elsewhere.places
    name = near(key, (*names, *(each for keys in elsewhere.values() for each in keys)))
    if name is None:
        return "", None
    if name not in names:
        _, places = _elsewhere(name)
        own = partition_setting(name) if "a partition" in places else None
        return f"; {name} is one of {listed(places)}", f"partitions: [{{{own}: …}}]" if own else None
    if (setting := catalog.rule_figures().slurm_keys_with_own_setting.keys.get(name)) is not None:
        return "", f"{setting} sets {name}"
    return "", f"did you mean '{name}'?" if _takes(name, release) else None


def _takes(name: str, release: tuple[int, ...]) -> bool:
    """Whether a definition for this release of Slurm may set the key, and it has an effect."""
    facts = catalog.slurm_conf()
    since, until = facts.keys_by_version.since.get(name), facts.keys_by_version.until.get(name)
    defunct = facts.defunct_keys.since.get(name)
    return (
        name not in catalog.limits().owned_slurm_keys.keys
        and not (since and release < slurm_release(since))
        and not (until and release > slurm_release(until))
        and not (defunct and release >= slurm_release(defunct))
    )


def _elsewhere(key: str) -> tuple[str, list[str]]:
    """The name of a key as Slurm writes it, and the other files and lines that have it."""
    found = [
        (name, place)
        for place, names in catalog.slurm_keys().elsewhere.places.items()
        for name in names
        if name.lower() == key.lower()
    ]
    return (found[0][0] if found else key), [place for _, place in found]


class KeyOfAnotherRelease(ClusterRule):
    id = "E0923"
    summary = "This Slurm does not know a key of slurm.conf."
    why = "slurmctld does not start with a key that it does not know."
    fix = "Remove the key, or choose a Slurm version that knows it with slurm.version."
    source = "https://slurm.schedmd.com/release_notes.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        version = slurm_version(site, slurm)
        release = slurm_release(version)
        table = catalog.slurm_conf().keys_by_version
        since = {name.lower(): (name, bound) for name, bound in table.since.items()}
        until = {name.lower(): (name, bound) for name, bound in table.until.items()}
        for key in slurm.settings:
            name, bound = since.get(key.lower(), ("", ""))
            if name and release < slurm_release(bound):
                text = f"Slurm {version} does not know {name}, which is a key since Slurm {bound}"
                yield self.problem((*_SETTINGS, key), text, on_key=True)
            name, bound = until.get(key.lower(), ("", ""))
            if name and release > slurm_release(bound):
                text = f"Slurm {version} does not know {name}, which was last a key of Slurm {bound}"
                yield self.problem((*_SETTINGS, key), text, on_key=True)


class DefunctKey(ClusterRule):
    id = "W0934"
    summary = "Slurm does nothing with a key of slurm.conf any more."
    why = "slurmctld and slurmd read it, log an error at every start, and do nothing with it: what it was for has gone."
    fix = "Remove the key; the release notes of the version in the message say what has taken its place."
    source = "https://github.com/SchedMD/slurm/blob/slurm-25.11/src/common/read_config.c"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        version = slurm_version(site, slurm)
        since = {name.lower(): (name, bound) for name, bound in catalog.slurm_conf().defunct_keys.since.items()}
        for key in slurm.settings:
            name, bound = since.get(key.lower(), ("", ""))
            if name and slurm_release(version) >= slurm_release(bound):
                text = f"Slurm {version} ignores {name}, which has had no effect since {bound}"
                yield self.problem((*_SETTINGS, key), text, on_key=True)


class KeyTwice(ClusterRule):
    id = "E0932"
    summary = "Two settings are the same key of slurm.conf."
    why = "Slurm ignores the case of keys and uses only the last of the two."
    fix = "Remove one of them."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        first: dict[str, str] = {}
        for key in slurm.settings:
            other = first.setdefault(key.lower(), key)
            if other != key:
                yield self.problem((*_SETTINGS, key), f"{key} and {other} are the same key of slurm.conf", on_key=True)


class BadLine(ClusterRule):
    id = "E0905"
    summary = "A setting does not make one line of slurm.conf."
    why = "A line break begins another line, # begins a comment, and a key is one word."
    fix = "Write one word as the key and one line without # as the value."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for key, value in slurm.settings.items():
            path = (*_SETTINGS, key)
            if not _KEY.fullmatch(key):
                yield self.problem(
                    path, f"{quoted(key)} is not one word of letters and digits, as keys of slurm.conf are", on_key=True
                )
            elif isinstance(value, str) and (fault := line_fault(value)):
                yield self.problem(path, f"the value of {key} for slurm.conf {fault}")


def line_fault(value: str) -> str | None:
    """Why a text cannot be a value in slurm.conf; None when it can."""
    if not value.strip():
        return "is empty"
    if "\n" in value or "\r" in value:
        return "has more than one line"
    if "#" in value:
        return "has a #, which begins a comment"
    return None if all(sign.isprintable() or sign == "\t" for sign in value) else "has a control character"


class BlockTopology(ClusterRule):
    id = "E0906"
    summary = "Block topology is switched on before there is a topology."
    why = (
        "slurmctld does not start with topology/block while topology.conf is empty, and it is filled only by azslurm "
        "on a running cluster."
    )
    fix = "Remove it; on the running cluster, `topology.sh update block` fills the file and switches it on."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for key, value in slurm.settings.items():
            if key.lower() == "topologyplugin" and str(value).strip().lower() == "topology/block":
                yield self.problem(
                    (*_SETTINGS, key),
                    "with TopologyPlugin=topology/block slurmctld does not start, because topology.conf is still empty",
                )


class LaunchParameters(ClusterRule):
    id = "E0908"
    summary = "launch_parameters is not a list joined by commas."
    why = "It becomes one value of slurm.conf, which a space or line break ends."
    fix = "Write parameter,parameter without spaces, for example use_interactive_step,enable_nss_slurm."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_LaunchParameters"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        value = slurm.launch_parameters
        if not (len(value) <= 1024 and re.fullmatch(r"[\w.=:/-]+(?:,[\w.=:/-]+)*", value, re.ASCII)):
            hint = ",".join(value.replace(",", " ").split())
            good = len(value) <= 200 and re.fullmatch(r"[\w.=:/,-]+", hint, re.ASCII)
            text = f"launch_parameters {quoted(value)} is not a list joined by commas"
            yield self.problem(
                ("slurm", "launch_parameters"),
                text,
                f"for example {hint}" if good else "for example use_interactive_step",
            )


class IdleTimeoutWithoutEffect(ClusterRule):
    id = "W0909"
    summary = "An idle time is given, but nodes do not stop."
    why = "Without autoscaling nodes run until someone stops them."
    fix = "Remove slurm.idle_timeout_s, or set slurm.autoscale: true."
    source = "https://slurm.schedmd.com/power_save.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if not slurm.autoscale and slurm.idle_timeout_s is not None and given(site, ("slurm", "idle_timeout_s")):
            text = f"idle_timeout_s is {slurm.idle_timeout_s} s, but autoscale is off and nodes do not stop"
            yield self.problem(("slurm", "idle_timeout_s"), text, on_key=True)


SETTINGS: Path = ("slurm", "settings")


def settings_of(slurm: Slurm, name: str) -> Iterator[tuple[Path, str]]:
    """Every place where a definition sets a key of slurm.conf, which knows no case, with the value as written there."""
    for key, value in slurm.settings.items():
        if key.lower() == name.lower():
            yield (*SETTINGS, key), slurm_value(value).strip()


def without_pmix(site: Site, slurm: Slurm) -> Iterator[RoleNode]:
    """The roles that do not run the project which finds or installs the library of Slurm's PMIx plug-in."""
    checked = any(is_checked(site.vm_size(size)) for partition in slurm.partitions for size in partition.sizes)
    for node in roles(site):
        role = {SCHEDULER: "scheduler", LOGIN: "login"}.get(node.path, "execute")
        specs = specs_of(role, node.settings, site.vm_size(node.vm_size), {}, nodes_are_checked=checked)
        if not any(spec.project == GPU_NODE for spec in specs):
            yield node


class PmixByDefault(ClusterRule):
    id = "W0912"
    summary = "Every srun loads PMIx, but nothing provides it on some nodes."
    why = (
        "With MpiDefault=pmix, srun and slurmd load libpmix for every job, also for one without MPI. Where the library "
        "is missing, each srun ends with an error. Only the project misc_ndv4 finds or installs it, and the scheduler "
        "and login nodes do not run that project unless the definition says so."
    )
    fix = (
        "Remove the key and start MPI programs with `srun --mpi=pmix`, or add misc_ndv4 to the extra_projects of each "
        "role."
    )
    source = "https://slurm.schedmd.com/mpi_guide.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, value in settings_of(slurm, "MpiDefault"):
            without = [node.label for node in without_pmix(site, slurm)]
            if without and value.lower().startswith("pmix"):
                text = f"MpiDefault is {quoted(value)}, but nothing provides libpmix on {listed(without)}"
                yield self.problem(path, text, "start MPI programs with `srun --mpi=pmix`")


class UnknownParameter(ClusterRule):
    id = "W0913"
    summary = "Slurm has no such parameter."
    why = (
        "Slurm ignores a word of this list that it does not know, so nothing changes. The parameters on which the rest "
        "of the cluster relies stay in the list, whatever is added to it."
    )
    fix = "Correct the word, or silence this rule if your Slurm knows it."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        lists = catalog.slurm_conf()
        for key, value in slurm.settings.items():
            name = list_key(key)
            if name is None or name in lists.fatal_when_unknown.keys:
                continue
            for text, hint in _unknown(name, slurm_value(value), lists.lists.keys[name]):
                yield self.problem((*SETTINGS, key), f"Slurm ignores {text}", hint)


class RefusedParameter(ClusterRule):
    id = "E0922"
    summary = "slurmctld or every job fails with this value."
    why = "The scheduler does not start, or no job does, and the cluster is of no use until slurm.conf is corrected."
    fix = "Remove the key or the parameter that the message names."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        yield from _judged(self, slurm, catalog.slurm_conf().values.refused)
        lists = catalog.slurm_conf()
        for name in lists.fatal_when_unknown.keys:
            for path, value in settings_of(slurm, name):
                for text, hint in _unknown(name, value, lists.lists.keys[name]):
                    yield self.problem(path, f"slurmctld does not start with {text}", hint)
        for name, pairs in lists.fatal_together.keys.items():
            for path, value in settings_of(slurm, name):
                given = parameters(value)
                for one, others in pairs.items():
                    both = [given[other.lower()] for other in others if one.lower() in given and other.lower() in given]
                    if both:
                        text = f"slurmctld does not start with {given[one.lower()]} beside {listed(both)} in {name}"
                        yield self.problem(path, text)


class RiskyValue(ClusterRule):
    id = "W0933"
    summary = "With this value of slurm.conf something that the cluster relies on is lost."
    why = "Nodes, GPUs and jobs are set up for the value that cyclecloud-slurm chooses; the message says what is lost."
    fix = "Remove the key, or silence this rule if you want exactly this."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        yield from _judged(self, slurm, catalog.slurm_conf().values.risky)


def _judged(rule: ClusterRule, slurm: Slurm, rows: Mapping[str, Expected]) -> Iterator[Problem]:
    """A problem for each setting whose value does not match its row."""
    for name, row in rows.items():
        for path, value in settings_of(slurm, name):
            if not re.fullmatch(row.matches, value, re.IGNORECASE):
                yield rule.problem(path, f"{name} is {quoted(value)}: {row.why}")


def _unknown(name: str, value: str, row: ListKey) -> Iterator[tuple[str, str | None]]:
    """What is wrong with each parameter that the manuals do not name, and a hint; nothing for a list of free names."""
    known = {word.lower() for word in row.known}
    stay = parameters(",".join(row.stay))
    for parameter, written in parameters(value).items():
        if known and parameter not in known:
            contrary = next((word for word in stay if word.removeprefix("no") == parameter), None)
            kept = f"; {contrary} stays" if contrary else ""
            yield f"{quoted(written)}, which is no parameter of {name}{kept}", meant(parameter, row.known)
