"""ShellCheck in cheaper runs finds what it finds of a script with all that it sources."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from generator.files import assets
from tests.bed.scripts.reachable import FUNCTION, bodies_of, reachable
from tests.bed.scripts.shellchecked import WITHOUT_FLOW, WITHOUT_NAMES, Script, findings, outlined, shellcheck

LIBRARY = (assets.folder("projects") / "_lib" / "cycleforge.sh").read_text()
SEEDED = """#!/usr/bin/env bash
# shellcheck source-path=SCRIPTDIR/../files source=cycleforge.sh disable=SC1091
. "${CYCLECLOUD_SPEC_PATH}/files/cycleforge.sh"
main() {
    echo "${CF_CONF}"
    CF_CONF=text
    spare="${missing}"
    SPARES="${SPARE_S}"
    words="$(ls)"
    echo ${words}
    cf_die gone
    echo never
}
cf_main main "$@"
main
"""


def test_a_function_with_a_document_of_its_own_ends_where_it_ends() -> None:
    text = "# shellcheck disable=SC2034\none() {\n    cat <<'END'\n}\ntwo() { true; }\nEND\n}\nthree() { true; }\n"
    assert list(bodies_of([text])) == ["one", "three"]
    assert FUNCTION.sub("", text) == ""


def test_an_outline_calls_the_scripts_own_functions_and_ends_as_the_function_does() -> None:
    ending = "a() {\n    b\n}\nb() {\n    mine\n    end 1\n}\nend() { true; exit; }\n"
    returning = "c() {\n    if x; then return; fi\n    end\n}\n"
    short = outlined("mine() { true; }\na\nb\nc\n", {"library.sh": ending + returning})["library.sh"]
    call = "    if read -r REPLY; then mine; fi\n"
    assert short == f"a() {{\n{call}    exit 1\n}}\nb() {{\n{call}    exit 1\n}}\nc() {{\n    true\n}}\n"


def found_by(option: str, text: str, sources: Mapping[str, str], folder: Path) -> list[tuple[int, int]]:
    """Lines and codes of what ShellCheck says of a script with these sources."""
    for path, content in {
        **{f"files/{name}": source for name, source in sources.items()},
        "scripts/x.sh": text,
    }.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)
    options = [option] if option else []
    return [(comment["line"], comment["code"]) for comment in shellcheck(folder / "scripts/x.sh", options=options)]


def test_shellcheck_finds_the_same_in_cheaper_runs(tmp_path: Path) -> None:
    """An array of the library that is taken for a text, what nothing sets, a name misspelled, what stands behind a
    function that never returns, and words that are not quoted. A script longer than its sources is looked at once."""
    sources = {"cycleforge.sh": LIBRARY}
    part = reachable(SEEDED, sources)
    whole = found_by("", SEEDED, sources, tmp_path / "whole")
    names = found_by(WITHOUT_FLOW, SEEDED, part, tmp_path / "names")
    flow = found_by(WITHOUT_NAMES, SEEDED, outlined(SEEDED, part), tmp_path / "flow")
    assert set(whole) <= {*names, *flow}
    assert set(whole) - set(names)
    assert set(whole) - set(flow)
    alone = found_by("", SEEDED, {}, tmp_path / "alone")
    assert {code for _, code in set(whole) - set(alone)} == {2128, 2178, 2317}
    assert {2034, 2086, 2153, 2154} <= {code for _, code in whole}
    assert found_by("", SEEDED, part, tmp_path / "once") == whole
    short = Script("scripts/x.sh", SEEDED, {"files/cycleforge.sh": LIBRARY})
    long = short._replace(text=SEEDED + "#\n" * LIBRARY.count("\n"))
    for script in (short, long):
        found = findings([script], tmp_path / str(len(script.text)))
        assert [(comment["line"], comment["code"]) for comment in found] == whole
    assert (tmp_path / str(len(short.text)) / WITHOUT_NAMES).exists()
    assert not (tmp_path / str(len(long.text)) / WITHOUT_NAMES).exists()
