"""What holds for every script of every project: it parses, shellcheck accepts it, it never does what harms a node."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pytest

from generator.files import assets
from generator.projects.content import contents
from generator.projects.ini import read_project
from tests.bed.scripts.node import TIMEOUT_FUNCTION, Node
from tests.bed.scripts.reachable import reachable, sourced
from tests.bed.scripts.shellchecked import Script, findings, shellcheck
from tests.projects.conftest import MakeNode

PROJECTS = ("misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc", "slurm_policy")
SOURCES = sorted(assets.folder("projects").rglob("*.sh"))
SHELLCHECK = Path(sys.executable).parent / "shellcheck"


def name_of(path: Path) -> str:
    """Project and script, for the ids of tests."""
    return f"{path.relative_to(assets.folder('projects')).parts[0]}-{path.name}"


def code_of(path: Path) -> str:
    """The script without its comments."""
    return "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("#"))


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_bash_parses_it(path: Path) -> None:
    assert subprocess.run(["bash", "-n", path], capture_output=True, check=False).stderr == b""


def rendered_scripts(project: str) -> dict[PurePosixPath, bytes]:
    """The scripts of a project as a deployment folder has them."""
    files = contents(read_project(assets.folder("projects") / project), shipped=True)
    return {path: file.content for path, file in files.items() if path.suffix == ".sh"}


def placed(folder: Path, path: PurePosixPath, content: str, sources: Mapping[str, str]) -> Path:
    """A script in a folder of its own, with what it sources beside it."""
    (folder / "files").mkdir(parents=True)
    for name, text in sources.items():
        (folder / "files" / name).write_text(text)
    script = folder / path.parent.name / path.name
    script.parent.mkdir(exist_ok=True)
    script.write_text(content)
    return script


@pytest.mark.parametrize("project", PROJECTS)
def test_shellcheck_accepts_the_rendered_project(tmp_path: Path, project: str) -> None:
    """Each script with what it sources. The first project has the library checked, of which all have copies."""
    library = {path.name: path.read_text() for path in SOURCES if path.parent.name == "_lib"}
    rendered = rendered_scripts(project)
    files = {path.name: content.decode() for path, content in rendered.items() if path.parent.name == "files"}
    texts = {f"{path.parent.name}/{path.name}": content.decode() for path, content in rendered.items()}
    own = {path: text for path, text in texts.items() if text not in library.values()}
    assert len(own) > 5
    checked = own | ({f"files/{name}": text for name, text in library.items()} if project == PROJECTS[0] else {})
    scripts = [
        Script(path, text, {f"files/{name}": files[name] for name in sourced(text, files)})
        for path, text in checked.items()
    ]
    assert findings(scripts, tmp_path) == []


SEEDED = """#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR/../files source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
main() {
    echo "${CF_CONF}"
    CF_CONF=text
    cf_die gone
    echo never
}
cf_main main "$@"
main
"""


def test_shellcheck_finds_the_same_with_what_a_script_can_reach(tmp_path: Path) -> None:
    """An array of the library that is taken for a text, and what stands behind a function that never returns."""
    sources = {"cycleforge.sh": next(path.read_text() for path in SOURCES if path.name == "cycleforge.sh")}
    part = reachable(SEEDED, sources)
    assert "\ncf_log() " in part["cycleforge.sh"], "cf_die calls it"
    assert "\ncf_write() " not in part["cycleforge.sh"]
    assert part["cycleforge.sh"].count("\n") < 0.8 * sources["cycleforge.sh"].count("\n")
    place = PurePosixPath("scripts/10-seeded.sh")
    whole, short, alone = (
        [(comment["line"], comment["code"]) for comment in shellcheck(placed(tmp_path / name, place, SEEDED, files))]
        for name, files in (("whole", sources), ("short", part), ("alone", {}))
    )
    assert whole == short
    assert {code for _, code in set(whole) - set(alone)} == {2128, 2178, 2317}


def test_what_shellcheck_says_of_the_rendered_projects_holds_for_the_sources() -> None:
    """They are the same texts, and in the sources, too, shellcheck finds the library, which lies elsewhere there."""
    rendered = {content for project in PROJECTS for content in rendered_scripts(project).values()}
    assert {path.read_bytes() for path in SOURCES} == rendered
    script = assets.folder("projects") / "misc_ubuntu/specs/default/cluster-init/scripts/50-limits.sh"
    command: list[str | Path] = [SHELLCHECK, "--check-sourced", "--enable=all", "--format=json1", script]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "cycleforge.sh" in {Path(comment["file"]).name for comment in json.loads(found.stdout)["comments"]}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_scripts_start_strictly(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("#!/usr/bin/env bash\n# ")
    if path.parent.name == "scripts":
        assert "\nset -euo pipefail\n" in text
        assert re.search(r"^[0-9]{2}-[a-z-]+\.sh$", path.name)
        assert text.endswith('cf_main main "$@"\n')
        assert text.count('. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"') == 1
        assert "cf_step " in text


FORBIDDEN = {
    "starts or restarts Slurm's daemons": r"systemctl[^\n]*\b(re)?start[^\n]*slurm(d|ctld|dbd)|service slurm",
    "gives everybody everything": r"chmod (-R )?0?777\b|-m 0?777\b",
    "appends to a file": r">>(?!\"\$\{(CYCLEFORGE_ROWS|RUN_DIR)\})",
    "touches slurm.conf": r"slurm\.conf(?!\.)",
    "kills by name": r"\bpkill\b(?! -(TERM|KILL) --session)|\bkillall\b",
    "drops caches": r"drop_caches",
    "wipes a disk": r"wipefs[^\n]*(\s-a\b|--all|--force)|\bdd\b\s(?!if=\"\$1\" iflag=nofollow,nonblock,)",
    "compares numbers as text": r"\[\[[^\]]*\s[<>]\s[^\]]*\]\]",
    "runs text as code": r"\beval\b",
    "downloads": r"\bwget\b|\bgit clone\b|curl[^\n]*https://",
    "compiles": r"\bmake\b install|\./configure",
    "waits for ever": r"while (true|:);|until false",
}


# The built-in runner reads lines as NHC does: they are shell.
ALLOWED = {"runs text as code": ["runner.sh"]}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_script(what: str) -> None:
    found = [path.name for path in SOURCES if re.search(FORBIDDEN[what], code_of(path))]
    assert found == ALLOWED.get(what, [])


NEWER_THAN_EL8 = {
    "EPOCHREALTIME without another way": r"\$\{?EPOCH(REALTIME|SECONDS)(?!:-)(?![^\n]*:-)",
    "wait -p, wait -f": r"\bwait -[pf]\b",
    "${name@U}, ${name@L}, ${name@K}": r"\$\{[a-zA-Z_]+@[ULKku]\}",
    "BASH_ARGV0, SRANDOM": r"\b(BASH_ARGV0|SRANDOM)\b",
    "local -": r"\blocal -\s",
    "printf -v into an element": r"printf -v '?[a-z_]+\[",
}


@pytest.mark.parametrize("what", NEWER_THAN_EL8)
def test_scripts_run_with_bash_4_4_of_el_8(what: str) -> None:
    assert [path.name for path in SOURCES if re.search(NEWER_THAN_EL8[what], code_of(path))] == []


def test_every_hanging_tool_has_a_limit() -> None:
    """A call that waits for hardware or for Slurm stands behind `timeout`."""
    tools = r"(nvidia-smi|scontrol|mdadm|mkfs\.\w+|blkid|lsblk|wipefs|mount|jetpack) "
    unlimited = []
    for path in SOURCES:
        for line in code_of(path).splitlines():
            if re.match(rf"\s*{tools}", line):
                unlimited.append(f"{path.name}: {line.strip()}")
    assert unlimited == []


def test_every_attribute_is_in_the_table_and_the_other_way_round() -> None:
    used = {
        key for path in SOURCES for key in re.findall(r"\bcycleforge\.[a-z_]+(?:\.[a-z_]+)*", code_of(path))
        if not key.endswith((".sh", ".conf")) and key != "cycleforge.sh"
    }  # fmt: skip
    table = (assets.folder("projects") / "README.md").read_text()
    documented = set(re.findall(r"^\| `(cycleforge\.[a-z_.]+)`", table, re.MULTILINE))
    assert used - {"cycleforge.blobfuse", "cycleforge.policy"} == documented, (
        "what is counted stands there with <name> or <n>"
    )


# ---------------------------------------------------------------- killed anywhere

WRITERS = [
    ("misc_ubuntu", "10-automatic-updates.sh"),
    ("misc_ubuntu", "30-logs-and-cores.sh"),
    ("misc_ubuntu", "50-limits.sh"),
    ("misc_ndv4", "30-limits.sh"),
    ("misc_ndv4", "50-nccl.sh"),
    ("pyxis_enroot", "10-enroot.sh"),
    ("slurm_nhc", "20-health.sh"),
]


def prepared(make_node: MakeNode, project: str) -> Node:
    node = make_node(project)
    node.vm_size("Standard_ND96amsr_A100_v4")
    node.write("etc/needrestart/x", "")
    node.write("etc/enroot/enroot.conf", "ENROOT_SCRATCH_PATH /mnt/enroot\nENROOT_MOUNT_HOME y\n")
    node.write("etc/slurm/plugstack.conf.d/pyxis.conf", "required /opt/pyxis/spank_pyxis.so\n")
    node.write("opt/pyxis/spank_pyxis.so", "")
    node.attribute("cycleforge.health.deep_s", "0")
    return node


# Keeps the files before and after every third rename, which is what a kill there leaves: the script has nothing else.
# Every third is enough: they all go through one function.
KEEPING_MV = """
n=$(( $(cat "$FAKE_STATE/count") + 1 )); echo $n >"$FAKE_STATE/count"
keep() { if (( n % 3 == 1 )); then MKDIR -p "KEPT/$n-$1"; COPY -a "$CYCLEFORGE_ROOT" "$FAKE_STATE" "KEPT/$n-$1"; fi; }
keep before
MOVE "$@" || exit
keep after
"""
KILLING_MV = 'MOVE "$@"; kill -KILL $PPID; exit 1'
# None of these scripts has a `timeout` in the background: all of them can have the function that starts no program.
QUICK = {"BASH_FUNC_timeout%%": TIMEOUT_FUNCTION}


def with_mv(node: Node, text: str, **words: Path) -> None:
    """Put this in place of mv; MOVE, COPY and MKDIR are the real programs, `words` stand for themselves."""
    (node.state / "count").write_text("0")
    real = {name: (node.bin / tool).resolve() for name, tool in (("MOVE", "mv"), ("COPY", "cp"), ("MKDIR", "mkdir"))}
    for word, path in (real | words).items():
        text = text.replace(word, str(path))
    node.fake("mv", text)


@pytest.mark.parametrize(("project", "script"), WRITERS)
def test_a_kill_at_any_rename_is_healed_by_the_next_run(
    make_node: MakeNode, tmp_path: Path, project: str, script: str
) -> None:
    node, kept = prepared(make_node, project), tmp_path / "kept"
    with_mv(node, KEEPING_MV, KEPT=kept)
    node.ok(script)
    wanted = node.content()
    renames = len(node.calls("mv "))
    node.remove("mv")
    node.link("mv")
    moments = sorted(kept.iterdir())
    assert len(moments) == 2 * ((renames + 2) // 3) > 0
    for moment in moments:
        for folder in (node.root, node.state):
            shutil.rmtree(folder)
            shutil.copytree(moment / folder.name, folder, symlinks=True)
        assert node.content() != wanted or renames - int(moment.name.split("-")[0]) < 3
        node.ok(script, **QUICK)
        assert node.content() == wanted, f"after a kill {moment.name} rename"
    killed = prepared(make_node, project)
    with_mv(killed, KILLING_MV)
    assert killed.run(script).returncode != 0
    shutil.rmtree(node.root)
    shutil.copytree(kept / "1-after/root", node.root, symlinks=True)
    assert killed.content() == node.content(), "a real kill leaves something else"
