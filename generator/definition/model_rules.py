"""What can be wrong with the keys and types of a definition: the rules E01xx."""

from __future__ import annotations

from ..problems.rule import Rule


class ModelRule(Rule):
    """A rule whose problems the model finds while it reads."""

    stage = "model"
    source = "docs/definition.md"


class UnknownKey(ModelRule):
    id = "E0101"
    summary = "The definition has a key that CycleForge does not know."
    why = "An unknown key would be ignored; most often it is misspelt."
    fix = "Correct or remove the key; `cycleforge schema` and docs/definition.md list all keys."


class MissingKey(ModelRule):
    id = "E0102"
    summary = "A required key is missing."
    why = "There is no safe default for it."
    fix = "Add the key."


class UnsetVariable(ModelRule):
    id = "E0103"
    summary = "The definition reads an environment variable that is not set."
    why = "Only values that the deployment can ask for, such as the SSH key, can be left open."
    fix = "Set the variable, or give a default: ${NAME:-default}."


class WrongType(ModelRule):
    id = "E0104"
    summary = "A value has the wrong type."
    why = "Values are not converted silently: a quoted number is a text."
    fix = "Write the value in the type that the message names."


class NotAllowed(ModelRule):
    id = "E0105"
    summary = "A value is not one of the allowed values."
    why = "The key accepts a fixed set of values."
    fix = "Use one of the values that the message lists."


class OutOfRange(ModelRule):
    id = "E0106"
    summary = "A number, text or list is too small or too large."
    why = "Azure, CycleCloud or Slurm refuses values outside the limits."
    fix = "Choose a value within the limits that the message names."
