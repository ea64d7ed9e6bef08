"""What can be wrong with the text of a definition before its keys are looked at: the rules E00xx."""

from __future__ import annotations

from ...problems.problem import RuleInfo

_YAML = "https://yaml.org/spec/1.2.2/"
_CORE = "https://yaml.org/spec/1.2.2/#103-core-schema"
_MERGE = "https://yaml.org/type/merge.html"

SYNTAX = "E0001"
DUPLICATE_KEY = "E0002"
KEY_NOT_TEXT = "E0003"
TAG = "E0004"
SECOND_DOCUMENT = "E0005"
EMPTY = "E0006"
NOT_A_MAPPING = "E0007"
ENCODING = "E0008"
CHARACTER = "E0009"
MISSING_VARIABLE = "E0010"
MALFORMED_VARIABLE = "E0011"
TOO_LARGE = "E0012"
ALIAS = "E0013"
MERGE = "E0014"
VARIABLE_VALUE = "E0015"


def _rule(rule_id: str, summary: str, why: str, fix: str, source: str = _YAML) -> RuleInfo:
    return RuleInfo(rule_id, summary, why, fix, source, level="error", subject="YAML and environment")


SOURCE_RULES: tuple[RuleInfo, ...] = (
    _rule(
        SYNTAX,
        "The file is not valid YAML.",
        "Nothing after the error can be understood, so the rest of the file was not checked.",
        "Correct the marked place. Indent with spaces only, keep the keys of one section in one column, and put text "
        "that holds ': ', ' #' or begins with one of @ ` % & * ! | > { [ into quotes.",
    ),
    _rule(
        DUPLICATE_KEY,
        "A mapping has the same key twice.",
        "YAML readers silently keep only one of them, and which one differs.",
        "Remove one of the two.",
    ),
    _rule(
        KEY_NOT_TEXT,
        "A key is not text.",
        "All keys of a definition are names. A number, true, null, a list, or a name built from a variable is not.",
        "Put the key into quotes, or write it out.",
        _CORE,
    ),
    _rule(
        TAG,
        "A value has a tag that definitions do not use, or that does not fit it.",
        "Tags such as !!python/object make some readers run code. Only !!str, !!int, !!float, !!bool, !!null, !!map "
        "and !!seq are understood.",
        "Remove the tag; put a value into quotes to make it text.",
        _CORE,
    ),
    _rule(
        SECOND_DOCUMENT,
        "The file holds more than one YAML document.",
        "One file describes one deployment; a second document would silently be ignored.",
        "Move what follows the '---' into a file of its own.",
    ),
    _rule(
        EMPTY,
        "The file is empty or holds only comments.",
        "There is nothing to build.",
        "Write a definition, or let `cycleforge init` write a commented one.",
        "",
    ),
    _rule(
        NOT_A_MAPPING,
        "The top of the file is not a mapping.",
        "A definition consists of sections, each with a key: name, location, admin, slurm and others.",
        "Begin with `name: …` in the first column, without a dash.",
        "",
    ),
    _rule(
        ENCODING,
        "The file is not UTF-8 text.",
        "Any other encoding would turn letters into other letters without notice.",
        "Save the file as UTF-8.",
        "https://yaml.org/spec/1.2.2/#52-character-encodings",
    ),
    _rule(
        CHARACTER,
        "The file holds a control character or an invisible character.",
        "YAML forbids control characters. An invisible one makes a key look right that is not.",
        "Delete the marked character and type the place again.",
        "https://yaml.org/spec/1.2.2/#51-character-set",
    ),
    _rule(
        MISSING_VARIABLE,
        "A text contains an environment variable that is not set.",
        "Only a value that consists of the variable alone can be asked for at deployment. An empty variable counts as "
        "not set.",
        "Set the variable, or give a default: ${NAME:-default}.",
        "",
    ),
    _rule(
        MALFORMED_VARIABLE,
        "A '${' is not followed by a variable name and '}'.",
        "Variables are written ${NAME} or ${NAME:-default}; other forms of the shell are not understood.",
        "Correct it, or write $${ where a literal ${ is meant.",
        "",
    ),
    _rule(
        TOO_LARGE,
        "The file is too large, nested too deeply, or grows too much by its aliases.",
        "A definition of a thousand partitions is far below these limits: 1 MiB, 40 levels, 100,000 values.",
        "Check that this is the right file; remove aliases of aliases.",
        "",
    ),
    _rule(
        ALIAS,
        "An alias has no anchor, or lies inside its own anchor.",
        "*name repeats the value that &name marked further up.",
        "Mark the value with &name before the alias, or put a text that begins with * into quotes.",
        "https://yaml.org/spec/1.2.2/#71-alias-nodes",
    ),
    _rule(
        MERGE,
        "A merge key '<<' has a value that is not a mapping.",
        "'<<' adds the keys of another mapping, or of each mapping of a list.",
        "Give it an alias: `<<: *name`.",
        _MERGE,
    ),
    _rule(
        VARIABLE_VALUE,
        "The value of an environment variable cannot stand in a file.",
        "It holds control characters or bytes that are not UTF-8 text. The value is not shown; it may be secret.",
        "Set the variable again.",
        "",
    ),
)

RULE_OF = {rule.id: rule for rule in SOURCE_RULES}
