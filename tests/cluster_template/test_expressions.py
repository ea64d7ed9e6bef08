"""Expressions of the kinds that Slurm templates use, read and computed."""

from __future__ import annotations

import pytest

from generator.cctemplate.expressions import EvaluationError, names, parse_expression
from generator.cctemplate.values import Value, evaluate

VALUES: dict[str, Value] = {
    "ClusterName": "My Lab", "Host": "Cluster Prefix", "Empty": "  ", "Yes": True, "No": False, "Nothing": None,
    "Size": 64, "Kind": "lustre", "Path": "/data",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("ifThenElse(Size > 0, Size, undefined)", 64),
        ("ifThenElse(Size > 64, Size, undefined)", None),
        ("ifThenElse(Nothing, 1, 2)", None),
        ("ifUndefined(Nothing, Path)", "/data"),
        ("ifUndefined(Path, 1)", "/data"),
        ('Kind == "LUSTRE"', True),
        ('Kind is "LUSTRE"', False),
        ('Kind === "lustre"', True),
        ("Nothing isnt true", True),
        ("Nothing =!= undefined", False),
        ("Nothing == true", None),
        ("Nothing || Yes", True),
        ("Nothing && No", False),
        ("Nothing && Yes", None),
        ("!Nothing", None),
        ("!Yes || !No && Yes", True),
        ("No == false", True),
        ('Kind in {"nfs", "lustre"}', True),
        ('Yes ? "a" : "b"', "a"),
        ('strcat("tcp:/lustrefs", Path)', "tcp:/lustrefs/data"),
        ('strcat("tcp:/lustrefs", Nothing)', None),
        ('StrJoin("-", ClusterName, "x")', "My Lab-x"),
        ('strjoin("-", {"a", "b"})', "a-b"),
        ("size(trim(Empty)) == 0", True),
        ('toLower(regexps("[^a-zA-Z0-9-]", ClusterName, "-"))', "my-lab"),
        ('regexp("^My", ClusterName)', True),
        ("substr(ClusterName, 0, 2)", "My"),
        ("toUpper(Kind)", "LUSTRE"),
        ("Size/2 + 2 * 3 - -1", 39.0),
        ("Size % 10 >= 4 && Size <= 64", True),
        ("1 / 0", None),
        ("(1 + 2) * 3", 9),
        ("$Size", 64),
        ('[Label="x"; Value=1]', {"Label": "x", "Value": 1}),
        ("['slurm:default'=[Order=1000;Optional=true]]", {"slurm:default": {"Order": 1000, "Optional": True}}),
        ("`10m`", "10m"),
        ("[]", {}),
    ],
)
def test_values(text: str, value: Value) -> None:
    assert evaluate(parse_expression(text), VALUES) == value


@pytest.mark.parametrize(
    "text",
    ["Unknown", "nosuch(1)", "substr(1)", 'Yes && "text"', '!"text"', '-"x"', '"a" < "b"', "size(1)", "toLower({1})",
     'ifThenElse("x", 1, 2)', 'substr("a", "b")', "ifThenElse(Yes)"],
)  # fmt: skip
def test_what_has_no_value_says_so(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(parse_expression(text), VALUES)


@pytest.mark.parametrize("text", ["1" + "+1" * 5000, '1e308 * 10 > 0 || regexp("(", "a")', "9" * 400 + " / 3"])
def test_expressions_beyond_reason_have_no_value(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(parse_expression(text), {})


def test_names_are_parameters_and_not_functions_words_or_fields() -> None:
    tree = parse_expression('f($A, B.c is undefined) && A ? [Label=C] : {true, "D"}')
    assert names(tree) == ("A", "B.c", "C")
