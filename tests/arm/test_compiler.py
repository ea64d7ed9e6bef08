"""The stand-in `bicep`: what it writes is what the real compiler wrote, and Azure's stand-in deploys it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.arm.test_deployments import V, ended, name_of, others
from tests.azure.compiled import NAMES, template
from tests.bed.arm import Arm
from tests.bed.arm.client import Client
from tests.bed.arm.state import OWNER
from tests.bed.bicep.compiler import compiled
from tests.bed.bicep.deployment import PLAUSIBLE
from tests.bed.bicep.place import SUBSCRIPTION, Azure
from tests.bed.bicep.program import placed
from tests.bed.bicep.template import Template
from tests.bed.bicep.values import EvaluationError, Scope
from tests.definitions import build

NETWORK = Path(__file__).parents[1] / "azure" / "network-f798d83.bicep"


def network_call(name: str) -> dict[str, Any]:
    """The deployment of the network, as the real compiler wrote it."""
    found = next(each for each in template(name)["resources"] if each["name"] == "cycleforge-network")
    return dict(found["properties"])


def plain(content: dict[str, Any], given: dict[str, Any]) -> list[object]:
    """All that Azure receives."""
    azure = Azure({}, "southcentralus")
    found = Template(azure, content, Scope(SUBSCRIPTION, "rg"), given, "n", "").resources()
    return [(each.symbol, each.type, each.api_version, each.id, each.body) for each in found]


@pytest.mark.parametrize("name", NAMES)
def test_the_real_compiler_wrote_the_same(name: str) -> None:
    call = network_call(name)
    given = {key: one["value"] for key, one in call["parameters"].items()}
    ours, theirs = compiled(NETWORK), call["template"]
    assert plain(ours, given) == plain(theirs, given)
    orders = [{key: set(each.get("dependsOn", [])) for key, each in one["resources"].items()} for one in (ours, theirs)]
    assert orders[0] == orders[1]
    assert ours["parameters"].keys() == theirs["parameters"].keys()
    assert {key: one["type"] for key, one in ours["outputs"].items()} == {
        key: one["type"] for key, one in theirs["outputs"].items()
    }


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rendered")


@pytest.mark.parametrize("name", ["gpt3-h100", "llm-a100", "reference"])
def test_a_shipped_definition_is_compiled_and_deployed(client: Client, arm: Arm, folders: Path, name: str) -> None:
    build.write(build.rendered(name), folders / name)
    others(arm)
    arm.state.pace = 50
    arm.state.caller.roles = [("/", OWNER)]
    content = compiled(folders / name / "main.bicep")
    given = {key: {"value": PLAUSIBLE[key]} for key in content["parameters"] if key in PLAUSIBLE}
    fields = {"mode": "Incremental", "template": content, "parameters": given}
    begun = client("PUT", name_of(arm), V, {"location": content["variables"]["location"], "properties": fields})
    assert begun.status_code == 201, begun.text
    record = ended(client, name_of(arm))["properties"]
    assert record.get("error") is None
    assert record["outputs"]["serverCertificateSha256"]["value"].count(":") == 31
    record_path = f"{arm.state.scope}/resourceGroups/{record['outputs']['resourceGroupName']['value']}"
    left = client("GET", f"{record_path}/providers/Microsoft.Resources/deployments/cycleforge-fingerprints", V)
    assert left.json()["properties"]["outputs"]["certificateSha256"]["type"] == "String"


def run(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    program = placed(folder / "bin")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CYCLE", "SLURM", "BICEP"))}
    return subprocess.run(
        [program, *words], cwd=folder, env=kept | variables, capture_output=True, text=True, timeout=60
    )


def test_the_program_speaks_as_bicep_does(tmp_path: Path) -> None:
    (tmp_path / "main.bicep").write_text(
        "param name string\n@secure()\nparam word string\noutput o string = 'x-${name}'\n"
    )
    word = "param word = az.getSecret('s', 'g', 'v', 'n')"
    lines = ["using './main.bicep'", "", "param name = readEnvironmentVariable('NAME')", word, ""]
    (tmp_path / "main.bicepparam").write_text("\n".join(lines))
    assert run(tmp_path, "--version").stdout.startswith("Bicep CLI version 0.")
    built = json.loads(run(tmp_path, "build", "main.bicep", "--stdout").stdout)
    assert built["outputs"]["o"]["value"] == "[format('x-{0}', parameters('name'))]"
    failed = run(tmp_path, "build-params", "main.bicepparam", "--stdout")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert '"NAME" does not exist' in failed.stderr
    both = json.loads(run(tmp_path, "build-params", "main.bicepparam", "--stdout", NAME="a").stdout)
    assert json.loads(both["templateJson"]) == built
    given = json.loads(both["parametersJson"])["parameters"]
    assert given["name"] == {"value": "a"}
    assert given["word"]["reference"]["secretName"] == "n"
    changed = run(
        tmp_path, "build-params", "main.bicepparam", "--stdout", NAME="a", BICEP_PARAMETERS_OVERRIDES='{"name": "b"}'
    )
    assert json.loads(json.loads(changed.stdout)["parametersJson"])["parameters"]["name"] == {"value": "b"}


def test_what_the_compiler_does_not_know_is_refused(tmp_path: Path) -> None:
    for text in ("func f() string => 'x'\n", "output o string = unknown\n", "@nonsense()\nparam p string\n"):
        (tmp_path / "main.bicep").write_text(text)
        with pytest.raises(EvaluationError):
            compiled(tmp_path / "main.bicep")
