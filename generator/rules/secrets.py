"""Secrets that are in a definition. Nothing here prints a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from ..definition.walk import key_of
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site

_ENV = "https://learn.microsoft.com/azure/azure-resource-manager/bicep/scenarios-secrets"

# The last word of a key decides: `hf_token` and `AccountKey`, but not `tokenizer` or `max_tokens`.
_SECRET_WORDS = (
    "password", "passwd", "pwd", "passphrase", "secret", "token", "sas", "credential", "credentials", "sastoken",
    "accountkey", "accesskey", "apikey", "privatekey", "clientsecret", "connectionstring", "sharedkey", "storagepass",
)  # fmt: skip
_TWO_WORDS = frozenset(
    {"account key", "access key", "api key", "private key", "connection string", "shared key", "storage pass"}
)
_TOKENS = (
    r"gh[pousr]_[A-Za-z0-9]{36}", r"github_pat_\w{40}", r"hf_[A-Za-z0-9]{30}", r"nvapi-[\w-]{40}", r"glpat-[\w-]{20}"
)  # fmt: skip
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")

_PRIVATE_KEY = "a private key"
_VALUES: tuple[tuple[str, re.Pattern[str]], ...] = (
    (_PRIVATE_KEY, re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----|PuTTY-User-Key-File-\d")),
    ("a storage account key", re.compile(r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{20}")),
    ("a SAS token", re.compile(r"(?:[?&]|^|;)(?:SharedAccessSignature=|sig=[A-Za-z0-9%+/]{20})")),
    ("a storage account key", re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}==")),
    ("an access token", re.compile(rf"(?<![A-Za-z0-9_-])(?:{'|'.join(_TOKENS)})")),
    ("a signed token", re.compile(r"(?<![A-Za-z0-9_-])eyJ[\w-]{10,500}\.eyJ[\w-]{10,4000}\.")),
    ("a password in an address", re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^/\s:@]{1,64}:[^/\s:@]{1,128}@")),
)  # fmt: skip
_LONGEST_VALUE = 200_000
_SHORTEST_VALUE = len("PuTTY-User-Key-File-3")
"""Only a password in an address is shorter; most values of a definition are."""


def _strings(data: Any) -> Iterator[tuple[Path, str, str]]:
    """(path, nearest key, text) of every text of the file, without recursion: files may be nested deeply."""
    stack: list[tuple[Path, str, Any]] = [((), "", data)]
    while stack:
        path, key, value = stack.pop()
        if isinstance(value, Mapping):
            stack.extend(((*path, each), str(each), value[each]) for each in reversed(list(value)))
        elif isinstance(value, list):
            stack.extend(((*path, index), key, value[index]) for index in reversed(range(len(value))))
        elif isinstance(value, str):
            yield path, key, value


@lru_cache(maxsize=1024)
def _is_secret_key(key: str) -> bool:
    words = [word.lower() for word in _WORD.findall(key[-120:])]
    return bool(words) and (words[-1] in _SECRET_WORDS or " ".join(words[-2:]) in _TWO_WORDS)


def secret_kind(key: str, value: str) -> str | None:
    """What kind of secret a value is; None when it does not look like one."""
    text = value[:_LONGEST_VALUE]
    may_be = len(text) >= _SHORTEST_VALUE or "://" in text
    kind = next((kind for kind, pattern in _VALUES if pattern.search(text)), None) if may_be else None
    if kind is None and value.strip() and _is_secret_key(key):
        return "what its name says"
    return kind


class SecretInFile(DefinitionRule):
    id = "E1301"
    summary = "The definition holds a secret."
    why = (
        "Definitions are committed, and their values reach the deployment history, node attributes and effective.yaml. "
        "Secrets are asked for at deployment, or read by nodes with their identity."
    )
    fix = (
        "Remove the value and revoke it if it was committed. The passwords of administrator and database are secure "
        "parameters."
    )
    source = _ENV

    def check(self, site: Site) -> Iterator[Problem]:
        for path, key, value in _strings(site.data):
            kind = secret_kind(key, value)
            if kind == _PRIVATE_KEY and path[-1:] == ("ssh_public_key",):
                text, hint = "admin.ssh_public_key holds a private key", "write the content of the .pub file beside it"
            elif kind is not None:
                text = f"{key_of(path, site.data)} holds a secret: {kind}"
                hint = "remove it; secrets are read from the environment when the deployment starts"
            else:
                continue
            yield self.problem(path, text, hint, hide_value=True)


class SecretVariable(DefinitionRule):
    id = "E1302"
    summary = "The definition reads an environment variable that holds a secret of the deployment."
    why = "Its value would be written into the output folder."
    fix = "Remove the reference; main.bicepparam reads the secret when the deployment starts."
    source = _ENV

    def check(self, site: Site) -> Iterator[Problem]:
        secrets = tuple(value for value in site.secret_values if len(value) >= 4)
        if not secrets:
            return
        for path, _, value in _strings(site.data):
            if any(secret in value for secret in secrets):
                text = f"{key_of(path, site.data)} holds the value of a secret environment variable"
                yield self.problem(path, text, "remove it", hide_value=True)
