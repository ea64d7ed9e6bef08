"""The built folder's Bicep, compiled by the `bicep` that the Azure command line brings, or another one.

Its parameters repeat what Azure refuses to change, as Azure has it; the README asks for that with `az`.
Source of the command: ParametersStdout in https://github.com/Azure/bicep, src/Bicep.Cli/Models/ParametersStdout.cs
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import CannotRead, ProgramMissing
from ..plan.deployment import Plan
from .answers import below
from .reader import Reader
from .refusals import NotAsked
from .requests import compute, services
from .session import az_folder

_LIMIT_S = 180
_STAND_IN = "Not-The-Secret-1-Aa"
"""What the compiler gets in place of a secret; it satisfies every rule that a parameter of ours has."""
_SHOWN = 10
_IN_VAULT = "/secrets/"


class Compiled(Struct, frozen=True):
    """What Azure gets, but for the secrets."""

    template: Mapping[str, Any]
    parameters: Mapping[str, Any]
    """Parameter → `{value: …}` or `{reference: …}`."""


def program(environment: Mapping[str, str]) -> Path:
    """`bicep` of the search path, else that of the Azure command line."""
    found = shutil.which("bicep", path=environment.get("PATH", ""))
    own = az_folder(environment) / "bin" / ("bicep.exe" if os.name == "nt" else "bicep")
    if found is None and not (own.is_file() and os.access(own, os.X_OK)):
        raise ProgramMissing("bicep is not installed", "az bicep install")
    return Path(found) if found is not None else own


def compiled(folder: Path, plan: Plan, environment: Mapping[str, str]) -> Compiled:
    """The folder's template and parameters. No secret reaches the compiler: a stand-in takes its place."""
    missing = [value for value in plan.asked if not environment.get(value.variable)]
    if missing:
        raise CannotRead(
            f"{missing[0].variable} is not set: {missing[0].title}",
            "export it, or fill in .envrc from .envrc.template and type: source .envrc",
        )
    words = [str(program(environment)), "build-params", "main.bicepparam", "--stdout"]
    inner = dict(environment) | {secret.variable: _STAND_IN for secret in plan.secrets}
    inner.pop("BICEP_PARAMETERS_OVERRIDES", None)
    try:
        done = subprocess.run(
            words, cwd=folder, env=inner, capture_output=True, text=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL
        )
    except OSError as error:
        raise ProgramMissing(
            f"cannot start bicep: {(error.strerror or 'error').lower()}", "az bicep upgrade"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise ProgramMissing(f"bicep has not finished within {_LIMIT_S} s", "az bicep upgrade") from error
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()][:_SHOWN]
        raise ProgramMissing(
            f"bicep cannot compile {folder / 'main.bicepparam'}:\n" + "\n".join(f"  {line}" for line in lines),
            "an old bicep does not know the language of these files: az bicep upgrade",
        )
    return _read(done.stdout)


def _read(text: str) -> Compiled:
    try:
        both = json.loads(text)
        template, parameters = json.loads(both["templateJson"]), json.loads(both["parametersJson"])["parameters"]
        return Compiled(dict(template.items()), dict(parameters.items()))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise ProgramMissing("bicep printed no template and parameters", "az bicep upgrade") from None


def with_secrets(compiled_: Compiled, plan: Plan, values: Mapping[str, str]) -> dict[str, Any]:
    """The parameters with the secrets, by their variables: values, or ids of secrets in a Key Vault.

    A parameter that names a vault in the parameter file keeps it (`az.getSecret`).
    """
    parameters = dict(compiled_.parameters)
    for secret in plan.secrets:
        if "reference" not in parameters.get(secret.parameter, {}):
            parameters[secret.parameter] = parameter(values[secret.variable])
    return parameters


def stand_ins(plan: Plan) -> dict[str, str]:
    """A value for each secret where Azure only looks, and needs none."""
    return {secret.variable: _STAND_IN for secret in plan.secrets}


def parameter(value: str) -> dict[str, Any]:
    """Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/key-vault-parameter"""
    if value.startswith("/subscriptions/") and "/Microsoft.KeyVault/vaults/".lower() in value.lower():
        vault, found, rest = value.partition(_IN_VAULT)
        name, _, version = rest.partition("/")
        if found and name and "/" not in version:
            more = {"secretVersion": version} if version else {}
            return {"reference": {"keyVault": {"id": vault}, "secretName": name, **more}}
    return {"value": value}


def unchangeable(plan: Plan, reader: Reader) -> dict[str, str]:
    """Environment variables of `main.bicepparam`, each with its value; empty as long as there is nothing.

    Raises Refused and NotAsked: not to know is not to know that there is no server.
    """
    found = {}
    if plan.server is not None:
        server = reader.find(compute.SERVER(group=plan.resource_group, name=plan.server.vm_name))
        properties = server.get("properties", {}) if server is not None else {}
        found["CYCLEFORGE_SERVER_KEY"] = _key(properties) if server is not None else ""
        if plan.server.image is not None:
            image = below(properties, "storageProfile", "imageReference", "version")
            found["CYCLEFORGE_SERVER_IMAGE"] = str(image or "")
    if plan.creates_database:
        found["CYCLEFORGE_DATABASE_STORAGE"] = str(
            _database_gib(plan, reader.find_pages(services.DATABASES(group=plan.resource_group)))
        )
    return found


def _key(properties: Mapping[str, Any]) -> str:
    keys = below(properties, "osProfile", "linuxConfiguration", "ssh", "publicKeys")
    if not isinstance(keys, list) or not keys or not isinstance(keys[0], Mapping) or not keys[0].get("keyData"):
        raise NotAsked("Azure does not say which SSH key the server was created with")
    return str(keys[0]["keyData"])


def _database_gib(plan: Plan, servers: Sequence[Mapping[str, Any]]) -> int:
    own = [each for each in servers if (each.get("tags") or {}).get(plan.cleanup.tag) == plan.name]
    sizes = [below(each.get("properties", {}), "storage", "storageSizeGB") for each in own]
    if any(not isinstance(size, int) for size in sizes):
        raise NotAsked("Azure does not say how large the storage of the database server is")
    return max(sizes, default=0)
