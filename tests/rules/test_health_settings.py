"""What E3401 accepts is what the scripts of slurm_nhc accept: the same keys, kinds, words and limits."""

from __future__ import annotations

import re

from msgspec import convert

from generator import catalog
from generator.catalog.rule_facts import HealthValue
from generator.files import assets

SCRIPTS = sorted((assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/scripts").glob("*.sh"))
BY_GENERATOR = "cycleforge.health.hand_back_h"
"""The definition has a key of its own for it, with limits of its own."""


def test_the_table_is_what_the_scripts_read() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS)
    found: dict[str, dict[str, object]] = {}
    for kind, key, rest in re.findall(r"(cf_attribute\w*|one_of) (cycleforge\.health\.\w+) ([^\n;]*)", text):
        words = rest.split()
        if kind == "cf_attribute_int":
            found[key] = {"kind": "whole", "min": int(words[1]), "max": int(words[2])}
        elif kind == "cf_attribute_bool":
            found[key] = {"kind": "switch"}
        elif kind == "one_of":
            found[key] = {"kind": "choice", "values": words[1:]}
        else:
            found.setdefault(key, {"kind": "path"})
    found["cycleforge.health.results"] |= {"values": ["off"]}
    del found[BY_GENERATOR]
    assert catalog.rule_figures().health_values.keys == {key: convert(row, HealthValue) for key, row in found.items()}
