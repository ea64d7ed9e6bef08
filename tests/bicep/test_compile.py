"""Every module and every rendered deployment, with its parameter file, passes the compiler or a checker."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from generator.render.deployment import deployment_files
from generator.rules.budgets import job_bytes
from tests.bed.plans import plan_from
from tests.bicep.compilers import MODULES, compiled, findings, findings_below, selected
from tests.bicep.variants import VARIANTS, minimal, write_folder


@pytest.fixture(scope="module")
def of_modules() -> list[str]:
    """What is found in the modules, none of which refers to another file."""
    assert not any(re.search(r"^(module|import)\b", module.read_text(), re.MULTILINE) for module in MODULES)
    return findings(*MODULES)


@pytest.mark.bicep
@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_module_is_valid_by_itself(module: Path, of_modules: list[str]) -> None:
    assert [line for line in of_modules if f"/{module.name}:" in line] == []


@pytest.mark.bicep
def test_every_finding_is_in_a_module(of_modules: list[str]) -> None:
    assert [line for line in of_modules if not any(f"/{module.name}:" in line for module in MODULES)] == []


LARGEST = tuple(f"bootstrap/payload/payload-{number:02}.bin" for number in range(14))


@pytest.fixture(scope="module")
def of_deployments(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """What is found in the folder of each variant, and in one with the largest payload."""
    top = tmp_path_factory.mktemp("deployments")
    largest = write_folder(minimal(), top / "largest payload", LARGEST)
    for piece in LARGEST:
        (largest.parent / piece).write_bytes(bytes(64 * 1024))
    written = {name: write_folder(VARIANTS[name](), top / name) for name in selected(VARIANTS, request)}
    return findings_below({"largest payload": largest, **written})


@pytest.mark.bicep
@pytest.mark.parametrize("name", ["largest payload", *VARIANTS])
def test_deployment_is_valid(name: str, of_deployments: dict[str, list[str]]) -> None:
    assert of_deployments[name] == []


@pytest.mark.bicep
@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("isHnsEnabled: false", "isHnsEnabled: 'no'", "BCP036"),
        ("@2025-06-01' = {", "@2025-06-31' = {", "BCP081"),
        ("param tags object", "param tags object\nparam spare string", "no-unused-params"),
    ],
)
def test_what_is_wrong_is_found(old: str, new: str, code: str, tmp_path: Path) -> None:
    main = write_folder(minimal(), tmp_path)
    locker = tmp_path / "modules" / "locker.bicep"
    text = locker.read_text()
    assert old in text
    locker.write_text(text.replace(old, new))
    assert any(code in line and "locker.bicep" in line for line in findings(main))


@pytest.mark.bicep
def test_a_module_call_with_a_missing_parameter_fails(tmp_path: Path) -> None:
    main = write_folder(minimal(), tmp_path)
    main.write_text(main.read_text().replace("    natGateway: true\n", ""))
    assert any("BCP035" in line for line in findings(main))


@pytest.mark.bicep(compiler=True)
def test_the_estimated_size_is_that_of_the_compiled_deployment(tmp_path: Path) -> None:
    files = deployment_files(plan_from(), tmp_path)
    for path, file in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(file.content)
    size = len(gzip.compress(compiled(tmp_path / "main.bicep"), 9))
    assert abs(job_bytes(files) - size) < size * 0.03
