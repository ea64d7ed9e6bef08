"""What hardening needs of the subscription is in the README of a deployment that asks for it, and only there."""

from __future__ import annotations

import re
import subprocess

import pytest

from generator.output.procedures import PROCEDURES
from tests.bed.plans import plan_from
from tests.bicep.variants import LOGS_ID, SET_ID, hardened
from tests.readme.test_readme import BLOCK, both, rendered

ASKS = {
    "encryption_at_host": ("az feature register --namespace Microsoft.Compute --name EncryptionAtHost", "true"),
    "trusted_launch": ("TrustedLaunchSupported", "true"),
    "disk_encryption_set_id": (f"az disk-encryption-set show --ids {SET_ID}", SET_ID),
    "diagnostics_workspace_id": ("Log Analytics Contributor", LOGS_ID),
}


@pytest.mark.parametrize("key", ASKS)
def test_what_a_key_needs_is_said_where_it_is_set(key: str) -> None:
    text, value = ASKS[key]
    assert text in rendered(plan_from(f"security: {{{key}: {value}}}"))
    assert text not in rendered(plan_from())


def test_every_size_is_asked_for_encryption_at_host() -> None:
    plan = hardened()
    asked = re.findall(r"--size (\S+) --query .*EncryptionAtHostSupported", rendered(plan))
    assert tuple(asked) == plan.quota.vm_sizes


def test_diagnostic_settings_are_deleted_by_their_name() -> None:
    line = f"az monitor diagnostic-settings delete --name {hardened().security.diagnostics_name} "
    assert line in rendered(hardened())
    assert line not in rendered(plan_from())


def test_the_procedures_have_their_sections() -> None:
    text = rendered(hardened(), "operations.md")
    titles = [title for key, title in PROCEDURES if key[0] == "security"]
    assert len(titles) == 3
    assert all(f"## {title}\n" in text for title in titles)
    assert "--set securityProfile.encryptionAtHost=true" in text
    assert "--set securityProfile.encryptionAtHost=false" in rendered(plan_from(), "operations.md")


def test_every_block_is_valid_shell() -> None:
    script = "\n".join(BLOCK.findall(both(hardened())))
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
