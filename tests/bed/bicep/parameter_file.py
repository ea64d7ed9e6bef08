"""A `.bicepparam` file → what a deployment is given.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/parameter-files and, for the functions,
https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions-parameters-file
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .expressions import Node
from .functions import FUNCTIONS
from .parser import parse
from .values import EvaluationError

_USING = re.compile(r"^using '([^']+)'$", re.MULTILINE)
_PARAM = re.compile(r"^param (\w+) = ", re.MULTILINE)


@dataclass
class _Secret:
    """`az.getSecret`: the deployment gets a reference, never the value."""

    reference: dict[str, Any]


@dataclass
class _Place:
    variables: Mapping[str, Node]
    environment: Mapping[str, str]

    def lookup(self, name: str) -> Any:
        if name not in self.variables:
            raise EvaluationError(f"{name} is not known")
        return self.variables[name].value(self)

    def call(self, name: str, arguments: list[Any]) -> Any:
        if name == "readEnvironmentVariable":
            variable, *default = arguments
            if variable not in self.environment and not default:
                raise EvaluationError(
                    f'Environment variable "{variable}" does not exist and there is no default value.'
                )
            return self.environment.get(variable, *default)
        if name == "getSecret":
            subscription, group, vault, secret, *version = arguments
            scope = f"/subscriptions/{subscription}/resourceGroups/{group}"
            found = {"keyVault": {"id": f"{scope}/providers/Microsoft.KeyVault/vaults/{vault}"}, "secretName": secret}
            return _Secret(found | ({"secretVersion": version[0]} if version else {}))
        if name not in FUNCTIONS:
            raise EvaluationError(f"the function {name} is not known")
        return FUNCTIONS[name](*arguments)


def parameters_of(text: str, environment: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The file that it is for, and the parameters: `{name: {value}}` or `{name: {reference}}`."""
    using = _USING.search(text)
    if using is None:
        raise EvaluationError("the parameter file has no `using`")
    names = _PARAM.findall(text)
    content = parse(_PARAM.sub(r"var \1 = ", _USING.sub("", text)))
    place = _Place(content.variables, environment)
    found: dict[str, Any] = {}
    for name in names:
        value = place.lookup(name)
        found[name] = {"reference": value.reference} if isinstance(value, _Secret) else {"value": value}
    for name, value in json.loads(environment.get("BICEP_PARAMETERS_OVERRIDES") or "{}").items():
        found[name] = {"value": value}
    return using[1], found
