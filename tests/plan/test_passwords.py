"""Every password that we accept reaches each reader as it was typed, and what a reader would spoil is refused."""

from __future__ import annotations

import base64
import json
import re
import string
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.azure.bicep import Compiled, with_secrets
from generator.plan.parameters import SecretPlan, secret_plans
from generator.render import bootstrap
from tests.bed.plans import plan_from
from tests.plan import slurm_conf
from tests.readme.test_readme import rendered

ROOT = Path(__file__).parents[2]
NEW = "slurm: {accounting: {type: new}, partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2}]}"
OLD = (
    "slurm: {accounting: {type: existing, host: db.example.com, user: slurm}, "
    "partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2}]}"
)
ADMIN, DATABASE = secret_plans(
    "ccadmin", has_server=True, has_jumpbox=True, has_accounting=True, database_user="slurmadmin"
)
(EXISTING,) = secret_plans(
    "ccadmin", has_server=False, has_jumpbox=False, has_accounting=True, database_user="slurm", has_new_database=False
)
WHOLE = "Zx9-Zx9-Zx9-"
"""A password that every reader takes."""
SIGNS = sorted({*string.printable, *"éß\u00a0\u2028\x7f\x1b\x00\x85"})


def accepted(secret: SecretPlan) -> st.SearchStrategy[str]:
    """What the check lets through, of all characters that it lets through in some place."""
    signs = [sign for sign in SIGNS if not secret.broken_by(WHOLE + sign + WHOLE)]
    drawn = st.text(st.sampled_from(signs), max_size=30)
    ends = st.sampled_from([(WHOLE, ""), ("", WHOLE), ("Zx9", "Zx9-Zx9-Zx9"), ("Q", "zK9-zK9-zK9")])
    whole = st.builds(lambda text, around: around[0] + text + around[1], drawn, ends)
    return whole.filter(lambda text: not secret.broken_by(text))


@pytest.mark.parametrize("symbol", [sign for sign in string.punctuation if sign not in "#\\'\""])
def test_a_symbol_that_does_not_count_is_told_from_those_that_do(symbol: str) -> None:
    """The portal counts some, Azure every one."""
    (said,) = [need.text for need in ADMIN.needs if "symbols" in need.text]
    counted = said.partition("count: ")[2].removesuffix(")")
    assert (said in ADMIN.broken_by(f"Aa1{symbol}zzzzzzzz")) is (symbol not in counted)
    assert DATABASE.broken_by(f"aa1{symbol}zzzzzzzz") == ()


@pytest.mark.parametrize(
    ("secret", "value", "why"),
    [
        (ADMIN, "secretsecret", "lower case, upper case, digits and symbols"),
        (ADMIN, "Sec-ret1", "12 to 123 characters"),
        (ADMIN, "S-1" + "e" * 121, "12 to 123 characters"),
        (ADMIN, "my-cCaDMIn-12", "the user's name"),
        (ADMIN, "@Secret-12345", "no @ at its beginning"),
        (ADMIN, "Secret-12345 ", "no space at its beginning or end"),
        (ADMIN, "Secret-12345\n", "no space at its beginning or end"),
        (ADMIN, "Sécret-12345", "only printable ASCII characters"),
        (ADMIN, "Secret-1\x0023456", "only printable ASCII characters"),
        (DATABASE, "Abc#def-12345", "no space, #, backslash or quote"),
        (DATABASE, "Abc\\def-12345", "no space, #, backslash or quote"),
        (DATABASE, "Abc def-12345", "no space, #, backslash or quote"),
        (DATABASE, "Abc'def-12345", "no space, #, backslash or quote"),
        (DATABASE, '"Abcdef-12345"', "no space, #, backslash or quote"),
        (DATABASE, "abcdefgh12345", "at least three of"),
        (DATABASE, "Slurm-12345", "the user's name"),
        (EXISTING, "a#b", "no space, #, backslash or quote"),
        (EXISTING, "a\nStorageHost=evil", "no space, #, backslash or quote"),
    ],
)
def test_what_breaks_a_rule_is_named_and_not_shown(secret: SecretPlan, value: str, why: str) -> None:
    broken = secret.broken_by(value)
    assert any(why in text for text in broken)
    assert all(text in secret.description for text in broken), "what is checked is what was printed"
    assert value not in " ".join(broken)


@pytest.mark.parametrize(
    ("secret", "value"), [(ADMIN, "Secret 12345-"), (DATABASE, "ABC-12345"), (DATABASE, "abcABC12"), (EXISTING, "x")]
)
def test_what_every_reader_takes_is_accepted(secret: SecretPlan, value: str) -> None:
    assert secret.broken_by(value) == ()


def test_three_of_four_kinds_in_every_choice() -> None:
    kinds = ["abcd", "XYWV", "1234", "-_-_"]
    for left in range(4):
        three = "".join(kind for index, kind in enumerate(kinds) if index != left)
        assert DATABASE.broken_by(three) == ()
        assert any("at least three" in text for text in DATABASE.broken_by(three.replace(three[:4], three[4:8])))


def test_the_password_of_a_database_that_exists_is_its_owners_choice() -> None:
    """A new server needs it, but only what carries it has a say."""
    (secret,) = [each for each in plan_from(OLD).secrets if each.parameter == "databasePassword"]
    assert (secret.min_length, secret.broken_by("short")) == (1, ())
    (secret,) = [each for each in plan_from(NEW).secrets if each.parameter == "databasePassword"]
    assert secret.broken_by("short")


def test_texts_and_check_come_from_one_declaration() -> None:
    plan = plan_from(NEW, "server: {jumpbox: {}}")
    boot: Any = bootstrap.configuration(plan, {})
    for secret in plan.secrets:
        assert secret.description == f"{secret.title}: {'; '.join(need.text for need in secret.needs)}."
        assert f"# {secret.description}\n" in rendered(plan, ".envrc.template")
        assert boot["secretRules"][secret.parameter] == [[need.text, need.pattern] for need in secret.needs]
    assert len(plan.secrets) == 2


# ------------------------------------------------------------ carriers


@given(accepted(ADMIN), accepted(DATABASE))
@settings(max_examples=150)
def test_the_parameters_of_the_deployment_carry_them(admin: str, database: str) -> None:
    plan = plan_from(NEW, "server: {jumpbox: {}}")
    values = {ADMIN.variable: admin, DATABASE.variable: database}
    sent = json.loads(json.dumps(with_secrets(Compiled({}, {}), plan, values)))
    assert sent == {"adminPassword": {"value": admin}, "databasePassword": {"value": database}}
    # As `server-bootstrap.bicep` packs them and start.sh stores them.
    packed = base64.b64encode(json.dumps(values).encode())
    assert json.loads(base64.b64decode(packed).decode()) == values


def read_back(script: str, passwords: list[str]) -> list[str]:
    """What a program got as the last word of each line, `{}` being the password in quotes."""
    lines = "".join(script.replace("{}", quote(each)) + "\n" for each in passwords)
    done = subprocess.run(["bash", "-euc", lines], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@given(st.lists(accepted(ADMIN), min_size=20, max_size=20))
@settings(max_examples=5)
def test_lines_of_the_shell_carry_that_of_the_administrator(passwords: list[str]) -> None:
    """`.envrc`, and the line of operations.md that sets the jumpbox's; `az` reads a file where a word begins with @."""
    plan = plan_from(NEW, "server: {jumpbox: {}}")
    (option,) = re.findall(r"--username ccadmin (--password.*)\n", rendered(plan, "operations.md"))
    script = f"export CYCLECLOUD_ADMIN_PASSWORD={{}}; printf '%s\\0' {option}"
    assert read_back(script, passwords) == [f"--password={each}" for each in passwords]
    assert not any(each.startswith("@") for each in passwords)


@pytest.mark.parametrize("secret", [DATABASE, EXISTING], ids=["new", "existing"])
def test_slurm_itself_reads_them_from_slurmdbd_conf(secret: SecretPlan) -> None:
    library = slurm_conf.library()
    if library is None:
        pytest.skip("Slurm is not installed (slurmdbd)")

    def read(values: list[str]) -> list[str | None]:
        line = [sys.executable, "-m", "tests.plan.slurm_conf", str(library)]
        done = subprocess.run(line, input=json.dumps(values), cwd=ROOT, capture_output=True, text=True, check=True)
        found: list[str | None] = json.loads(done.stdout)
        return found

    @given(st.lists(accepted(secret), min_size=50, max_size=50))
    @settings(max_examples=4, deadline=None)
    def whole(values: list[str]) -> None:
        assert read(values) == values

    whole()
    every = "".join(sign for sign in string.punctuation if not EXISTING.broken_by(sign))
    assert read([f"Aa1{every}", f"{every}Aa1"]) == [f"Aa1{every}", f"{every}Aa1"]
    assert read(["Abc#def-12345", "Abc\\def-1", '"Abc"']) == ["Abc", "Abcdef-1", "Abc"], "why we refuse them"
