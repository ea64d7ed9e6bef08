"""Case files: definitions whose findings stand as comments under the lines that they are about.

    name: hpc_lab
    #     ^^^^^^^ E0201 the deployment name 'hpc_lab' has …; for example 'hpc-lab'

Carets cover the columns of the finding; `<` in front of them means one column further left, for what begins in the
first column. Comment lines `# with: {…}` give what is not in the file: local projects and secret values. What only
a plan shows is looked for where the definition has no error and no local project.

`python -m tests.rules.annotations [FILE…]` writes the comments anew; the diff is then to be read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator import pipeline
from generator.definition.certificate import certificate_of
from generator.definition.read import read_model
from generator.definition.text.source import Source, load
from generator.plan.network import layout_of
from generator.problems.problem import Problem, fails, locate
from generator.problems.sorting import sort_problems
from generator.projects.local import LocalProject
from generator.rules import check_definition, check_findings, check_plan
from generator.rules.base import Site
from generator.rules.projects import OF_THE_MACHINE
from tests.bed.yaml_data import yaml_data

CASES = Path(__file__).parent / "cases"
_ANNOTATION = re.compile(r"#( *)(<?\^+) ([EWI]\d{4}) (.*)")
_WITH = "# with: "


@dataclass(frozen=True, order=True)
class Finding:
    """One finding at its place; lines and columns count from 1."""

    line: int
    column: int
    end_column: int
    rule_id: str
    text: str


def site_of(source: Source, given: dict[str, Any]) -> Site | None:
    """What the rules look at; None when the file cannot be read as a definition."""
    reading = read_model(source.data)
    if reading.definition is None:
        return None
    local = {
        name: LocalProject(
            name,
            project.get("version", "1.0.0"),
            tuple(project.get("specs", ["default"])),
            project.get("size_bytes", 1000),
            project.get("problem"),
        )
        for name, project in given.get("local_projects", {}).items()
    }
    definition = reading.definition
    secrets, certificate = tuple(given.get("secret_values", ())), certificate_of(definition, CASES)
    return Site(definition, source.data, layout_of(definition), local, secrets, certificate)


def problems_of(text: str, filename: str = "case.yaml") -> tuple[Source, tuple[Problem, ...]]:
    """All findings of the rules, silenced ones too, sorted by position."""
    given: dict[str, Any] = {}
    for line in text.splitlines():
        if line.startswith(_WITH):
            given |= yaml_data(line.removeprefix(_WITH))
    source = load(text, filename, {})
    reading = read_model(source.data) if source.data is not None else None
    assert not source.problems, source.problems
    assert reading is not None
    assert not reading.problems, reading.problems
    site = site_of(source, given)
    assert site is not None
    found = list(check_definition(site))
    if not fails(found) and not site.local_projects:
        plan = pipeline.plan_of(site.definition, source, CASES)
        found += [problem for problem in check_plan(plan) if problem.rule_id not in OF_THE_MACHINE]
    return source, sort_problems((*found, *check_findings(site, found)), source)


def findings_of(text: str) -> list[Finding]:
    source, problems = problems_of(text)
    found = []
    for problem in problems:
        place = locate(problem, source)
        words = f"{problem.message}; {problem.hint}" if problem.hint else problem.message
        found.append(Finding(place.line, place.column, max(place.end_column, place.column + 1), problem.rule_id, words))
    return sorted(found)


def annotated_findings(text: str) -> list[Finding]:
    """What the comments of a case say."""
    found = []
    line_number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        match = _ANNOTATION.fullmatch(line)
        if match is None:
            line_number = number
            continue
        blanks, mark, rule_id, words = match.groups()
        column = 1 if mark.startswith("<") else len(blanks) + 2
        found.append(Finding(line_number, column, column + len(mark), rule_id, words))
    return sorted(found)


def without_annotations(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not _ANNOTATION.fullmatch(line.rstrip("\n")))


def annotate(text: str) -> str:
    """The case with the findings that the rules have now."""
    plain = without_annotations(text).splitlines()
    lines: list[str] = []
    findings = findings_of("\n".join(plain) + "\n")
    for number, line in enumerate(plain, start=1):
        lines.append(line)
        for finding in findings:
            if finding.line == number:
                width = finding.end_column - finding.column
                mark = (
                    f"<{'^' * max(width - 1, 1)}" if finding.column == 1 else " " * (finding.column - 2) + "^" * width
                )
                lines.append(f"#{mark} {finding.rule_id} {finding.text}")
    return "\n".join(lines) + "\n"


def main(names: Sequence[str]) -> None:
    """Write the comments of the given cases, or of all, anew."""
    for path in [Path(name) for name in names] or sorted(CASES.glob("*.yaml")):
        before = path.read_text(encoding="utf-8")
        after = annotate(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(path.name)


if __name__ == "__main__":
    main(sys.argv[1:])
