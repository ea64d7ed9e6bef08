"""What can be wrong with the text of a definition before its keys are looked at: the rules E00xx."""

from __future__ import annotations

from ...problems.rule import Rule

_YAML = "https://yaml.org/spec/1.2.2/"
_CORE = "https://yaml.org/spec/1.2.2/#103-core-schema"


class TextRule(Rule):
    """A rule whose problems the reader of the text finds."""

    stage = "text"
    source = _YAML


class Syntax(TextRule):
    id = "E0001"
    summary = "The file is not valid YAML."
    why = "Nothing after the error can be understood, so the rest of the file was not checked."
    fix = (
        "Correct the marked place. Indent with spaces only, keep the keys of one section in one column, and put "
        "text that holds ': ', ' #' or begins with one of @ ` % & * ! | > { [ into quotes."
    )


class DuplicateKey(TextRule):
    id = "E0002"
    summary = "A mapping has the same key twice."
    why = "YAML readers silently keep only one of them, and which one differs."
    fix = "Remove one of the two."


class KeyNotText(TextRule):
    id = "E0003"
    summary = "A key is not text."
    why = "All keys of a definition are names. A number, true, null, a list, or a name built from a variable is not."
    fix = "Put the key into quotes, or write it out."
    source = _CORE


class UnknownTag(TextRule):
    id = "E0004"
    summary = "A value has a tag that definitions do not use, or that does not fit it."
    why = (
        "Tags such as !!python/object make some readers run code. Only !!str, !!int, !!float, !!bool, !!null, "
        "!!map and !!seq are understood."
    )
    fix = "Remove the tag; put a value into quotes to make it text."
    source = _CORE


class SecondDocument(TextRule):
    id = "E0005"
    summary = "The file holds more than one YAML document."
    why = "One file describes one deployment; a second document would silently be ignored."
    fix = "Move what follows the '---' into a file of its own."


class EmptyFile(TextRule):
    id = "E0006"
    summary = "The file is empty or holds only comments."
    why = "There is nothing to build."
    fix = "Write a definition, or let `cycleforge init` write a commented one."
    source = ""


class NotAMapping(TextRule):
    id = "E0007"
    summary = "The top of the file is not a mapping."
    why = "A definition consists of sections, each with a key: name, location, admin, slurm and others."
    fix = "Begin with `name: …` in the first column, without a dash."
    source = ""


class NotUtf8(TextRule):
    id = "E0008"
    summary = "The file is not UTF-8 text."
    why = "Any other encoding would silently turn characters into other ones."
    fix = "Save the file as UTF-8."
    source = "https://yaml.org/spec/1.2.2/#52-character-encodings"


class ForbiddenCharacter(TextRule):
    id = "E0009"
    summary = "The file holds a control character or an invisible character."
    why = "YAML forbids control characters. An invisible one makes a wrong key look right."
    fix = "Delete the marked character and type the place again."
    source = "https://yaml.org/spec/1.2.2/#51-character-set"


class MissingVariableInText(TextRule):
    id = "E0010"
    summary = "A text contains an environment variable that is not set."
    why = (
        "Only a value that consists of the variable alone can be asked for at deployment. An empty variable "
        "counts as not set."
    )
    fix = "Set the variable, or give a default: ${NAME:-default}."
    source = ""


class MalformedVariable(TextRule):
    id = "E0011"
    summary = "A '${' is not followed by a variable name and '}'."
    why = "Variables are written ${NAME} or ${NAME:-default}; other forms of the shell are not understood."
    fix = "Correct it, or write $${ where a literal ${ is meant."
    source = ""


class TooLarge(TextRule):
    id = "E0012"
    summary = "The file is too large, nested too deeply, or grows too much through its aliases."
    why = "A definition of a thousand partitions is far below these limits: 1 MiB, 40 levels, 100,000 values."
    fix = "Check that this is the right file; remove aliases of aliases."
    source = ""


class BadAlias(TextRule):
    id = "E0013"
    summary = "An alias has no anchor, or is inside its own anchor."
    why = "*name repeats the value that &name marked above."
    fix = "Mark the value with &name before the alias, or put a text that begins with * into quotes."
    source = "https://yaml.org/spec/1.2.2/#71-alias-nodes"


class BadMerge(TextRule):
    id = "E0014"
    summary = "A merge key '<<' has a value that is not a mapping."
    why = "'<<' adds the keys of another mapping, or of each mapping of a list."
    fix = "Give it an alias: `<<: *name`."
    source = "https://yaml.org/type/merge.html"


class UnusableVariable(TextRule):
    id = "E0015"
    summary = "The value of an environment variable is not allowed in a file."
    why = "It holds control characters or bytes that are not UTF-8 text. The value is not shown; it may be secret."
    fix = "Set the variable again."
    source = ""
