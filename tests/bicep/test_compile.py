"""Every module and every rendered deployment passes the checker, and the compiler where there is one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from generator.render.deployment import deployment_files
from generator.rules.budgets import job_bytes
from tests.bed.plans import plan_from
from tests.bicep.compilers import MODULES, compiled, compiler_output, findings
from tests.bicep.variants import VARIANTS, minimal, write_folder


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_module_is_valid_by_itself(module: Path) -> None:
    assert findings(module) == []


@pytest.mark.parametrize("name", VARIANTS)
def test_deployment_is_valid(name: str, tmp_path: Path) -> None:
    assert findings(write_folder(VARIANTS[name](), tmp_path)) == []


def test_the_largest_payload_is_valid(tmp_path: Path) -> None:
    pieces = tuple(f"bootstrap/payload/payload-{number:02}.bin" for number in range(14))
    main = write_folder(minimal(), tmp_path, pieces)
    for piece in pieces:
        (tmp_path / piece).write_bytes(bytes(64 * 1024))
    assert findings(main) == []


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("isHnsEnabled: false", "isHnsEnabled: 'no'", "BCP036"),
        ("@2025-06-01' = {", "@2025-06-31' = {", "BCP081"),
        ("param tags object", "param tags object\nparam spare string", "no-unused-params"),
    ],
)
def test_the_checker_is_able_to_fail(old: str, new: str, code: str, tmp_path: Path) -> None:
    main = write_folder(minimal(), tmp_path)
    locker = tmp_path / "modules" / "locker.bicep"
    text = locker.read_text()
    assert old in text
    locker.write_text(text.replace(old, new))
    assert any(code in line and "locker.bicep" in line for line in findings(main))


def test_a_module_call_with_a_missing_parameter_fails(tmp_path: Path) -> None:
    main = write_folder(minimal(), tmp_path)
    main.write_text(main.read_text().replace("    natGateway: true\n", ""))
    assert any("BCP035" in line for line in findings(main))


@pytest.mark.parametrize("command", ["build", "lint"])
@pytest.mark.parametrize("name", VARIANTS)
def test_the_compiler_accepts_it(name: str, command: str, tmp_path: Path) -> None:
    assert compiler_output(command, write_folder(VARIANTS[name](), tmp_path)) == ""


@pytest.mark.parametrize("name", VARIANTS)
def test_the_compiler_accepts_the_parameter_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = VARIANTS[name]()
    for variable in [*(item.variable for item in plan.secrets), *(item.variable for item in plan.asked)]:
        monkeypatch.setenv(variable, "/".join(["long-enough-1A"] * 9))
    write_folder(plan, tmp_path)
    assert compiler_output("build-params", tmp_path / "main.bicepparam") == ""


def test_the_estimated_size_is_that_of_the_compiled_deployment(tmp_path: Path) -> None:
    files = deployment_files(plan_from(), tmp_path)
    for path, file in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(file.content)
    size = len(gzip.compress(compiled(tmp_path / "main.bicep"), 9))
    assert abs(job_bytes(files) - size) < size * 0.03
