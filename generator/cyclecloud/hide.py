"""Takes secrets out of text that leaves a machine: those that are known, and whatever has the form of one.

Too much is hidden rather than too little: what a name like `password` or `token` stands before is gone, whatever it is.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

HIDDEN = "***"
SHORTEST = 4
"""Shorter texts are no secrets, and hiding each of their occurrences leaves nothing to read."""
_NAMES = (
    r"pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|sas|"
    r"(?:access|account|api|shared|storage|private|client|encryption|signing)[ _-]?(?:key|secret)|"
    r"connection[ _-]?string|shared[ _-]?access[ _-]?signature|keystore[ _-]?pass\w*"
)
_REST = r"[\w.-]{0,40}"
"""What a name may end with. It has a limit, as all have that stand before a name: a text may be one long word."""
_NAME = re.compile(_NAMES, re.I)
_VALUE = (
    r"""(?:(?:(?P<slashes>\\+)"[^\n]{0,2000}?(?<!\\)(?P=slashes)"|"(?:[^"\\]|\\.)*"|'[^']*'|\[[^\]]*\]|\{[^{}]*\})"""
    r"""(?=[\s,;:&}\])<]|\Z)|\S+)"""
)
"""In quotes or brackets, if it ends with them; else to the next space: passwords have commas, semicolons and quotes."""
_KEY_END = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
_KEY_LINE = re.compile(r"[A-Za-z0-9+/=]{0,76}\s*")
FORMS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    # RFC 7468
    ("private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S),
     HIDDEN),
    # https://learn.microsoft.com/rest/api/storageservices/create-service-sas
    ("signature of a SAS", re.compile(r"(?i)\b(sig=)[^&\s\"'<>]+"), rf"\1{HIDDEN}"),
    # RFC 6750, RFC 7617
    ("authorization", re.compile(r"(?i)\b(bearer|basic|negotiate) +[A-Za-z0-9._~+/=-]{8,}"), rf"\1 {HIDDEN}"),
    # RFC 7519
    ("JSON web token", re.compile(r"\beyJ[\w-]+\.eyJ[\w-]+(?:\.[\w-]*)?"), HIDDEN),
    # https://learn.microsoft.com/azure/storage/common/storage-account-keys-manage: 512 bits in base64
    ("key of an account", re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{86}=="), HIDDEN),
    # https://learn.microsoft.com/purview/sit-defn-azure-ad-client-secret
    ("client secret", re.compile(r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}"), HIDDEN),
    # https://docs.github.com/code-security/secret-scanning (prefixes), https://huggingface.co/docs/hub/security-tokens,
    # https://docs.nvidia.com/ngc (nvapi-)
    ("token of a service", re.compile(r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|hf_\w{20,}|nvapi-[\w-]{20,})"),
     HIDDEN),
    # RFC 3986
    ("password in an address", re.compile(r"(\w{1,20}://[^\s/:@\"']*:)[^\s/@\"']+@"), rf"\1{HIDDEN}@"),
    ("header", re.compile(r"(?i)\b((?:authorization|cookie)\\*[\"']?\s*[:=]\s*\\*[\"']?)[^\r\n\"'\\]+"),
     rf"\1{HIDDEN}"),
    # YAML, properties, logs: to the end of the line
    ("named line", re.compile(rf"(?im)((?:{_NAMES}){_REST}[ \t]*(?:[=:][ \t]+|(?<=[ \t])=))(?![\"'\[{{])\S.*$"),
     rf"\1{HIDDEN}"),
    # JSON, also within a text of JSON, and words of a command line
    ("named value", re.compile(rf"(?i)((?:{_NAMES}){_REST}\\*[\"']?\s*[=:]\s*){_VALUE}"), rf"\1{HIDDEN}"),
    ("named option", re.compile(rf"(?i)((?:^|\s)--?(?:\w[\w-]{{0,40}})?(?:{_NAMES}){_REST} +)(?!-)\S+"),
     rf"\1{HIDDEN}"),
    # https://curl.se/docs/manpage.html#-u
    ("login of curl", re.compile(r"((?<!\S)(?:-u|--user)[ =]*[\"']?[^\s:\"']+:)\S+"), rf"\1{HIDDEN}"),
    ("named element", re.compile(rf"(?i)(<[\w:.-]{{0,40}}(?:{_NAMES}){_REST}>)[^<]*"), rf"\1{HIDDEN}"),
    # gingi/cyclecloud-agent-plugin tests/python/test_official_cli.py: the login of the CLI
    ("login of the command line", re.compile(r"(?i)((?<![\w.-])key[ \t]*=[ \t]*)\S+"), rf"\1{HIDDEN}"),
)  # fmt: skip
"""(what, form, what stands for it), in the order in which they are applied."""


class Hide:
    def __init__(self, known: Iterable[str]) -> None:
        forms: set[str] = set()
        for secret in known:
            if len(secret) >= SHORTEST:
                forms |= _spelled(secret)
        # The longest first: a short secret may be part of a longer one.
        self._known = sorted(forms, key=len, reverse=True)

    def clean(self, text: str) -> tuple[str, int]:
        """The text without secrets, and how many were taken out. JSON is taken apart: its texts have lines."""
        if text.lstrip()[:1] in ("{", "["):
            try:
                value, count = self._value(json.loads(text))
            except (ValueError, RecursionError):
                return self._text(text)
            text, more = self._without_known(json.dumps(value, indent=2, ensure_ascii=False) + "\n")
            return text, count + more
        return self._text(text)

    def _value(self, value: Any) -> tuple[Any, int]:
        if isinstance(value, str):
            return self._text(value)
        count = 0
        if isinstance(value, list):
            items = [self._value(each) for each in value]
            return [each for each, _ in items], sum(found for _, found in items)
        if isinstance(value, dict):
            shown: dict[str, Any] = {}
            pair = any(_NAME.search(str(each)) for name, each in value.items() if name.lower() in ("name", "key"))
            for name, each in value.items():
                is_named = bool(_NAME.search(name)) or (pair and name.lower() == "value")
                if is_named and each and not isinstance(each, bool):
                    shown_value, found = HIDDEN, 1  # of a list or an object, too
                else:
                    shown_value, found = self._value(each)
                shown_name, more = self._text(name)
                shown[shown_name] = shown_value
                count += found + more
            return shown, count
        return value, 0

    def _text(self, text: str) -> tuple[str, int]:
        text, count = self._without_known(text)
        text, ends = _without_key_ends(text)
        count += ends
        for _, form, instead in FORMS:
            text, found = form.subn(instead, text)
            count += found
        return text, count

    def _without_known(self, text: str) -> tuple[str, int]:
        count = 0
        for secret in self._known:
            count += text.count(secret)
            text = text.replace(secret, HIDDEN)
        return text, count


def _without_key_ends(text: str) -> tuple[str, int]:
    """Without the rest of a private key whose beginning was cut off, as the end of a log is taken."""
    count, begun = 0, 0
    parts: list[str] = []
    for end in _KEY_END.finditer(text):
        before = text[begun : end.start()]
        if "-----BEGIN " not in before:
            lines = before.split("\n")
            kept = len(lines)
            while kept and _KEY_LINE.fullmatch(lines[kept - 1]):
                kept -= 1
            before = "\n".join([*lines[:kept], HIDDEN])
            count += 1
            parts.append(before)
        else:
            parts.append(text[begun : end.end()])
        begun = end.end()
    return "".join([*parts, text[begun:]]), count


def _spelled(secret: str) -> set[str]:
    """The usual encodings of it."""
    plain = base64.b64encode(secret.encode()).decode("ascii")
    return {
        secret, plain, plain.rstrip("="), quote(secret, safe=""), json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1], secret.replace("'", "'\\''"), secret.replace("'", "'\"'\"'"),
        repr(secret)[1:-1], json.dumps(json.dumps(secret)[1:-1])[1:-1],
        secret.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"),
    }  # fmt: skip
