"""Azure is asked through generator/azure: no module starts `az` but for the tunnel through a Bastion."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.command import ROOT

STARTERS = {"subprocess", "asyncio.subprocess", "pty", "execve", "execv", "execvp", "execvpe", "posix_spawn", "system"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / "generator").rglob("*.py")):
        yield path.relative_to(ROOT / "generator").as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def starts_programs(tree: ast.Module) -> bool:
    """Whether it can start one: by a module or function of the standard library, or by our own holder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and any(each.name in STARTERS for each in node.names):
            return True
        if isinstance(node, ast.Attribute) and (node.attr in STARTERS or node.attr == "held"):
            return True
    return False


def words_of_az(tree: ast.Module) -> Iterator[tuple[str, ...]]:
    """Lists of words, and calls with a word, that begin with `az`; a sentence in one string is for people."""
    for node in ast.walk(tree):
        words = node.elts if isinstance(node, ast.List | ast.Tuple) else node.args if isinstance(node, ast.Call) else []
        texts = tuple(each.value if isinstance(each, ast.Constant) else "…" for each in words)
        if texts[:1] == ("az",):
            yield tuple(map(str, texts[:4]))


def test_only_the_tunnel_is_a_process_of_az() -> None:
    starting = [(name, tree) for name, tree in modules() if starts_programs(tree)]
    assert {"azure/bicep.py", "blobs/fetch.py", "cyclecloud/shell.py"} < {name for name, _ in starting}
    found = {words for _, tree in starting for words in words_of_az(tree)}
    assert found == {("az",), ("az", "network", "bastion", "tunnel")}  # the first: `which("az")`


def test_a_question_by_az_would_be_seen() -> None:
    tree = ast.parse('import subprocess\nsubprocess.run(["az", "vm", "list"])\n')
    assert starts_programs(tree)
    assert list(words_of_az(tree)) == [("az", "vm", "list")]
