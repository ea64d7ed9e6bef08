"""project.ini as public projects write it: sections of the cluster form, lists of blobs, run lists; and bad ones."""

from __future__ import annotations

from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.projects.content import Missing
from generator.projects.ini import ProjectUnreadable, read_project
from generator.projects.package import Package, package_folder
from tests.projects.folders import INI, project

FORM = """\
[project]
name = queue
label = Queue of the “Ätna” group
version = 4.0.9
type = scheduler
autoupgrade = true

[blobs]
Files = a.tar.gz,b.zip , sub/c.whl

[spec scheduler]
run_list = role[queue_scheduler_role]
[spec login]
run_list =

[config queue.version]
Required = True
Label = Version
Description = Größe: what to install, "as is"
ParameterType = StringList
Config.Plugin = pico.form.Dropdown
Config.Entries := {[Value="25.11.5"; Label="25.11.5"],
    [Value="24.05.4"]}
DefaultValue = 25.11.5

[config queue.policy]
DefaultValue = Terminate
    [[[[list Config.Entries]]]]
    Name = Terminate
    Label = Terminate
    [[[[list Config.Entries]]]]
    Name = Terminate
    not a setting at all ] [
    [ not closed
"""


def blobs(folder: Path, *names: str) -> Path:
    for name in names:
        place = folder / "blobs" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(name.encode())
    return folder


def listed(package: Package) -> list[str]:
    return [str(path) for path in package.blobs]


def test_a_file_like_the_one_of_the_slurm_project(tmp_path: Path) -> None:
    """The forms of Azure/cyclecloud-slurm at 4.0.9, project.ini, in our own words."""
    folder = blobs(project(tmp_path, FORM), "a.tar.gz", "b.zip", "sub/c.whl")
    found = read_project(folder)
    assert (found.name, found.version, found.type) == ("queue", "4.0.9", "scheduler")
    assert found.label == "Queue of the “Ätna” group"
    assert found.blobs == ("a.tar.gz", "b.zip", "sub/c.whl")
    assert found.blob_lines["b.zip"] == 9
    assert found.run_lists == {"scheduler": ("role[queue_scheduler_role]",)}
    manifest = package_folder(folder).manifest
    assert b"label" not in manifest
    assert b"login" not in manifest, "an empty run list is none"
    assert package_folder(project(tmp_path, FORM.replace("\n", "\r\n"))).manifest == manifest


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30)).filter(
        lambda lines: not any(line.strip().startswith("[") for line in lines)
    )
)
@settings(max_examples=50)
def test_what_a_section_of_the_form_holds_does_not_matter(lines: list[str]) -> None:
    text = "\n".join([INI, "[config x.y]", *lines, "[[[[list Config.Entries]]]]", *lines, "[blobs]", "Files = a"])
    with TemporaryDirectory() as folder:
        assert read_project(project(Path(folder), text)).blobs == ("a",)


@given(st.binary(max_size=200))
@example(b"a\0b")
@settings(max_examples=50)
def test_no_file_is_so_bad_that_it_has_no_message_of_ours(content: bytes) -> None:
    with TemporaryDirectory() as name:
        folder = project(Path(name))
        for start in (b"", INI.encode(), b"[project]\n", INI.encode() + b"[blobs]\nFiles = ", b"[project]\nname ="):
            (folder / "project.ini").write_bytes(start + content)
            with suppress(ProjectUnreadable):
                package_folder(folder)


BAD = [
    ("[blobs]\nFiles = a,\n        b\n", 7, "'b' continues the list of files"),
    ("[blobs]\nFiles = a\n        b.tar.gz\n", 7, "continues the list of files"),
    ("[blobs]\nFiles = a,\n  b=1.tgz\n", 7, "continues the list of files"),
    ("[blobs]\nFiles = a, \\\n", 6, "is continued with"),
    ("[blobs]\nFiles = a\n[blobs]\nFiles = b\n", 7, "section [blobs] occurs twice, first in line 5"),
    ("[blobs x]\nFiles = a\n[[Blobs x]]\nFiles = b\n", 7, "occurs twice"),
    ("[spec a]\nrun_list = x\n[spec a]\nrun_list = y\n", 7, "section [spec a] occurs twice"),
    ("[project]\nlabel = x\n", 5, "section [project] occurs twice"),
    ("[blobs]\nFiles = a\nfiles = b\n", 7, "'files' is set twice, first in line 6"),
    ("[spec a/b]\nrun_list = x\n", 5, "'a/b' is not a valid spec name"),
    ("[spec]\nrun_list = x\n", 5, "'' is not a valid spec name"),
    ("[config x]\nany\n[blobs\nFiles = a\n", 7, "section '[blobs' is not closed"),
    ("[config x]\n[ spec y] # note\n", 6, "is not closed"),
    ("[blobs] # note\nFiles = a\n", 5, "is not closed"),
    ("[blobs ä]\nFiles = a\n", 5, "outside ASCII"),
    ("[blobs]\nFiles = ä.tgz\n", 6, "outside ASCII"),
    ("[blobs]\nFiles = /etc/passwd\n", 6, "'/etc/passwd', an absolute path"),
    ("[blobs]\nFiles = C:/x\n", 6, "an absolute path"),
    ("[blobs]\nFiles = \\x\n", 6, "an absolute path"),
    ("[blobs]\nFiles = ok, ../x\n", 6, "'../x', which leaves blobs/"),
    ("[blobs]\nFiles = ok\n\n[blobs more]\nFiles = a/../b\n", 9, "which leaves blobs/"),
    ("[blobs]\nFiles = ok, ./a\n", 6, "which names no file"),
    ("[blobs]\nFiles = ok, sub/\n", 6, "which names no file"),
    ("[blobs]\nFiles = ok, sub\n", 6, "'sub', which is a folder"),
    ("[blobs]\nFiles = ok, none-*\n", 6, "'none-*', which matches nothing in blobs/"),
    ("[blobs]\nFiles = ok, su*\n", 6, "'su*', which matches nothing in blobs/"),
    ("[blobs]\nFiles = ok, gone\n", 6, "'gone', which is not in blobs/"),
    ("[blobs]\nFiles = ok, gone, no-[0-9], x/y\n", 6, "'gone', 'no-[0-9]', 'x/y', which are not in blobs/"),
    ("[blobs]\nFiles = ok\n[blobs b]\nFiles = gone\n", 8, "'gone', which is not in blobs/"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "words"), BAD)
def test_a_bad_line_is_named(tmp_path: Path, text: str, line: int, words: str) -> None:
    folder = blobs(project(tmp_path, INI + text), "ok", "sub/x")
    with pytest.raises(ProjectUnreadable) as caught:
        package_folder(folder)
    assert words in caught.value.message
    assert (caught.value.file, caught.value.line) == (folder / "project.ini", line)
    assert caught.value.hint or "set twice" in words


def test_forms_of_blob_sections(tmp_path: Path) -> None:
    text = "[blobs]\nFiles = one\n[[blobs two]]\nfiles := t, one\n[Blobs three]\n FILES=z-*\n[blobs 4]\nFiles =\n"
    folder = blobs(project(tmp_path, INI + text), "one", "t", "z-2", "z-10", "z-1~", ".z-3")
    found = package_folder(folder)
    assert listed(found) == ["one", "t", "z-10", "z-2"]
    places = [found.manifest.index(f'"{name}"'.encode()) for name in ("one", "t", "z-10", "z-2")]
    assert places == sorted(places), "in the order of the list"
    assert [str(path) for path in found.left_out] == ["blobs/.z-3", "blobs/z-1~"]


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("*.tgz", ["a.tgz", "b.tgz"]),
        ("sub/*.tgz", ["sub/c.tgz"]),
        ("*/?.tgz", ["sub/c.tgz"]),
        ("**/*.tgz", ["sub/c.tgz"]),
        ("[ab].tgz", ["a.tgz", "b.tgz"]),
        ("[!a].tgz", ["b.tgz"]),
        ("x[1].bin", ["x[1].bin"]),
        ("x?1?.bin, x[0-9].bin", ["x1.bin", "x[1].bin"]),
        ("s*/d/*", ["sub/d/e"]),
        (".h*", [".hidden"]),
        ("A.tgz, *", None),
        ("b.tgz, *", [".no", "a.tgz", "b.tgz", "x1.bin", "x[1].bin"]),
    ],
)
def test_patterns(tmp_path: Path, pattern: str, wanted: list[str] | None) -> None:
    """As Python's glob: `*` stops at `/`, leaves hidden files alone, and takes no folder."""
    names = ("a.tgz", "b.tgz", "sub/c.tgz", "sub/d/e", "x[1].bin", "x1.bin", ".hidden")
    folder = blobs(project(tmp_path, INI + f"[blobs]\nFiles = {pattern}\n"), *names)
    if wanted is None:
        with pytest.raises(Missing, match=r"A\.tgz"):
            package_folder(folder)
    else:
        assert listed(package_folder(folder)) == [name for name in wanted if name != ".no"]


_NAMES = st.lists(st.from_regex(r"[a-c]{1,2}(-[12])?(/[a-c]\.x)?", fullmatch=True), min_size=1, max_size=8, unique=True)


@given(_NAMES, st.from_regex(r"[abc*?]{1,3}(/[abc*?]{1,2}(\.[x*])?)?", fullmatch=True))
@settings(max_examples=50)
def test_patterns_match_what_they_say(names: list[str], pattern: str) -> None:
    files = [name for name in names if not any(other.startswith(f"{name}/") for other in names)]
    with TemporaryDirectory() as place:
        folder = blobs(project(Path(place), INI + f"[blobs]\nFiles = {pattern}\n"), *files)
        wanted = sorted(
            name
            for name in files
            if name.count("/") == pattern.count("/")
            and all(map(fnmatchcase, PurePosixPath(name).parts, PurePosixPath(pattern).parts))
        )
        is_pattern = "*" in pattern or "?" in pattern
        if wanted and (is_pattern or pattern in files):
            assert listed(package_folder(folder)) == wanted
        else:
            with pytest.raises(ProjectUnreadable, match=r"project\.ini:6: \[blobs\] lists"):
                package_folder(folder)


def test_blobs_that_nothing_lists_stay(tmp_path: Path) -> None:
    folder = blobs(project(tmp_path, INI + "[blobs]\nFiles = a\n"), "a", "b", "sub/c", "README.txt", ".gitkeep")
    found = package_folder(folder)
    assert listed(found) == ["a"]
    assert [str(path) for path in found.left_out] == ["blobs/b", "blobs/sub/c"]


def test_a_spec_with_a_run_list_needs_no_folder(tmp_path: Path) -> None:
    """Azure/cyclecloud-htcondor has recipes for specs whose folders hold nothing."""
    found = package_folder(project(tmp_path, INI + "[spec broker]\nrun_list = role[a], recipe[b::c]\n"))
    assert found.project.run_lists == {"broker": ("role[a]", "recipe[b::c]")}
    assert b'"broker": {\n            "run_list": [\n                "role[a]",' in found.manifest


def test_a_spec_folder_that_holds_nothing_is_none(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "specs/empty").mkdir()
    (folder / "specs/kept").mkdir()
    (folder / "specs/kept/.gitkeep").touch()
    assert read_project(folder).specs == ("default",)


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "project.ini").mkdir()
    with pytest.raises(ProjectUnreadable, match="cannot be read"):
        read_project(tmp_path)
