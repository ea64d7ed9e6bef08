"""What takes secrets out of texts: any secret, in any spelling that a source has, behind any of the names."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.cyclecloud.hide import Hide

NAMES = ("password", "adminPassword", "SLURM_DATABASE_PASSWORD", "AccountKey", "storage-key", "api_key",
         "client-secret", "SharedAccessSignature", "access_token", "connectionString",
         "webServerKeystorePass", "HF_TOKEN")  # fmt: skip
CONTEXTS: dict[str, Callable[[str, str], str]] = {
    "assignment": lambda name, secret: f"set {name}={secret}\n",
    "end of a file": lambda name, secret: f"{name}={secret}",
    "property": lambda name, secret: f"{name} = {secret}\nnext = 1\n",
    "YAML": lambda name, secret: f"a:\n  {name}: {secret}\n  b: 1\n",
    "shell": lambda name, secret: f"+ export {name}={shlex.quote(secret)}\n",
    "option": lambda name, secret: f"+ cyclecloud --{name} {shlex.quote(secret)} --force\n",
    "option with a sign": lambda name, secret: f"+ cyclecloud --{name}={shlex.quote(secret)} --force\n",
    "JSON": lambda name, secret: json.dumps({"a": [{name: secret, "b": 1}]}),
    "JSON in a line": lambda name, secret: f"INFO {json.dumps({name: secret, 'b': 1})} was sent\n",
    "JSON in JSON": lambda name, secret: json.dumps({"message": json.dumps({name: secret})}),
    "JSON in JSON in a line": lambda name, secret: f"INFO {json.dumps({'message': json.dumps({name: secret})})}\n",
    "JSON that was cut": lambda name, secret: json.dumps({name: secret})[:-2],
    "parameter of a deployment": lambda name, secret: json.dumps({name: {"value": secret}}),
    "list": lambda name, secret: json.dumps({name: [secret]}),
    "pair": lambda name, secret: json.dumps([{"name": name, "value": secret}]),
    "element": lambda name, secret: f"<a><{name}>{escape(secret)}</{name}></a>",
    "address": lambda _, secret: f"GET https://ada:{quote(secret, safe='')}@host/path\n",
    "curl": lambda _, secret: f"+ curl --user ada:{secret} https://host\n",
}
WINDOW = 6
"""So many characters in a row are a leak."""
SECRETS = st.from_regex(r"\A[A-Za-z0-9][!-~]{11,30}\Z").filter(lambda text: len(set(text)) > WINDOW)


def leaks(secret: str, shown: str, around: str) -> list[str]:
    """Parts of the secret that are there, and are not a part of what stands around it."""
    parts = {secret[at : at + WINDOW] for at in range(len(secret) - WINDOW + 1)}
    return sorted(part for part in parts if part in shown and part not in around)


@pytest.mark.parametrize("context", CONTEXTS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(name=st.sampled_from(NAMES), secret=SECRETS)
def test_a_secret_that_nobody_knows_is_found_by_its_name(context: str, name: str, secret: str) -> None:
    text = CONTEXTS[context](name, secret)
    shown, count = Hide([]).clean(text)
    assert leaks(secret, shown, CONTEXTS[context](name, "")) == [], (text, shown)
    assert count


@settings(max_examples=150, deadline=None, derandomize=True)
@given(secret=SECRETS, context=st.sampled_from(sorted(CONTEXTS)))
def test_a_secret_that_is_known_is_found_without_a_name(secret: str, context: str) -> None:
    text = CONTEXTS[context]("x", secret)
    shown, _ = Hide([secret]).clean(text)
    assert leaks(secret, shown, CONTEXTS[context]("x", "")) == [], (text, shown)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(["INFO", "node htc-1 is up", "rc=0", '{"a": [1, null, true]}', "x: y", "10.0.0.4:22"])))
def test_what_is_no_secret_stays(lines: list[str]) -> None:
    text = "log:\n" + "\n".join(lines)
    assert Hide(["n0t-there"]).clean(text) == (text, 0)


@pytest.mark.parametrize("begin", range(3))
def test_the_rest_of_a_key_whose_beginning_is_not_there(begin: int) -> None:
    """The end of a log is taken, so a block may begin anywhere."""
    body = [f"{'b3BlbnNzaC1rZXk' * 4}{number}=" for number in range(4)][begin:]
    text = "\n".join(["a log", "of lines", *body, "-----END OPENSSH PRIVATE KEY-----", "goes on"])
    shown, count = Hide([]).clean(text)
    assert (shown.splitlines()[0], shown.splitlines()[-1], "b3Blbn" in shown, count) == ("a log", "goes on", False, 1)
