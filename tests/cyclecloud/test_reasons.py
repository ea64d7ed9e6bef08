"""Every message that Microsoft documents gets its own words; nodes of one reason are one group."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.cyclecloud import cluster
from generator.cyclecloud.reasons import explained, reasons

MESSAGES = (
    "Timeout awaiting system boot-up",
    "Timed out connecting to CycleCloud at https://10.0.0.4",
    "Certificate validation failed for CycleCloud",
    "Unable to setup return proxy: cannot connect to 10.0.0.9:22",
    "The requested VM size Standard_X is not available in the current region",
    "Failed to execute cluster-init script '1.sh' in project 'own' (return code: 1)",
    "Failed to find project own in locker azure-storage",
    "Unable to determine AccessKey for URL",
    "Failed to register Azure providers",
    "SkuNotAvailable: no capacity",
    "Operation could not be completed as it results in exceeding approved standardNDSH100v5Family Cores quota",
)


def test_each_message_has_its_own_words() -> None:
    found = [explained(message, "lab") for message in MESSAGES]
    assert None not in [words for words, _ in found]
    assert len(dict.fromkeys(found)) == len(MESSAGES) == len(catalog.cyclecloud_failures().failures.rows)
    assert explained("something new", "lab") == (None, None)


@pytest.mark.parametrize("difference", ["{}", "after {} s"])
def test_nodes_of_one_reason_are_one_group(difference: str) -> None:
    records = [
        {"Name": f"c-hpc-{number}", "Template": "hpc", "Status": "Failed", "StatusMessage": difference.format(number)}
        for number in (10, 9, 2)
    ]
    (found,) = reasons(cluster.nodes_of(records), "lab")
    assert found.nodes == ("c-hpc-2", "c-hpc-9", "c-hpc-10")
