"""The options of the frameworks at the versions that the recipes pin: committed lists, read from the pinned source.

`python -m tests.jobs.option_names` writes the lists anew from the git directories in the folder that the variable
`FRAMEWORK_SOURCES` names (`<owner>+<name>/repo`, or `<owner>+<name>`); `make accept` calls it. A framework whose source
is not there keeps its list, and that is said. A clone without file contents is enough: `git clone --bare
--filter=blob:none https://github.com/pytorch/pytorch pytorch+pytorch`.

An option is a literal name in a call of `add_argument`, or a field of a dataclass of which the framework makes options
(Megatron-LM in core 0.19, `ArgumentGroupFactory`): `--name`, for a switch that is on `--no-name` and
`--disable-name`, or the names that the field gives itself. For LLM Foundry it is a field of `TrainConfig`: what the
first part of an override may be.
"""

from __future__ import annotations

import ast
import os
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.recipes.versions import pin

FOLDER = Path(__file__).parent / "options"
Read = Callable[[str], str]
"""Path in the repository → text; raises `LookupError` where it is not there."""


@dataclass(frozen=True)
class Program:
    """A program that takes options: where it is defined, at which version, and how its names are read."""

    name: str
    repository: str
    version: str
    """A commit or a tag."""
    files: tuple[str, ...]
    functions: tuple[str, ...] = ()
    """Of a file after the first only the options that these add; empty: all."""
    dataclasses: tuple[str, ...] = ()
    """Files whose classes may become options."""
    config: str = ""
    """A dataclass whose fields are the names, without `--`."""


_MEGATRON = "megatron/training/arguments.py"
_CONFIG = tuple(
    f"megatron/training/config/{name}.py"
    for name in ("common_config", "training_config", "resilience_config", "inference_config")
)
_CORE = (
    "megatron/core/transformer/transformer_config.py", "megatron/core/model_parallel_config.py",
    "megatron/core/tokenizers/utils/build_tokenizer.py",
)  # fmt: skip
_MEGATRON_PIN = pin("frameworks/megatron-lm/commit")
_COMPOSER, _FOUNDRY, _TORCH = (f"v{pin(f'frameworks/{name}/version')}" for name in ("composer", "llm-foundry", "torch"))
PROGRAMS = (
    Program("megatron", "NVIDIA/Megatron-LM", _MEGATRON_PIN, (_MEGATRON,)),
    Program("megatron-0.19", "NVIDIA/Megatron-LM", "core_v0.19.0", (_MEGATRON,), dataclasses=(*_CONFIG, *_CORE)),
    Program(
        "preprocess_data", "NVIDIA/Megatron-LM", _MEGATRON_PIN, ("tools/preprocess_data.py", _MEGATRON),
        functions=("_add_tokenizer_args",),
    ),
    # v2.7.0 has the same names; NVIDIA's image has a commit between the two.
    Program("torchrun", "pytorch/pytorch", _TORCH, ("torch/distributed/run.py",)),
    Program("composer", "mosaicml/composer", _COMPOSER, ("composer/cli/launcher.py",)),
    Program("convert_dataset_hf", "mosaicml/llm-foundry", _FOUNDRY, ("scripts/data_prep/convert_dataset_hf.py",)),
    Program("convert_dataset_json", "mosaicml/llm-foundry", _FOUNDRY, ("scripts/data_prep/convert_dataset_json.py",)),
    Program("train", "mosaicml/llm-foundry", _FOUNDRY, ("llmfoundry/utils/config_utils.py",), config="TrainConfig"),
)  # fmt: skip


def committed(name: str) -> frozenset[str]:
    """The list of a program as it is in the checkout."""
    lines = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split())


def names_of(program: Program, read: Read) -> frozenset[str]:
    trees = [ast.parse(read(path)) for path in program.files]
    if program.config:
        return frozenset(name for name, _ in _fields(_classes(trees)[program.config], _classes(trees)))
    found: set[str] = set(_added(trees[0]))
    for tree in trees[1:]:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name in program.functions:
                found |= set(_added(node))
    if program.dataclasses:
        found |= set(_made(trees[0], _classes([*trees, *(ast.parse(read(path)) for path in program.dataclasses)])))
    return frozenset(found)


def _added(tree: ast.AST) -> Iterator[str]:
    """Literal names of calls of `add_argument`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            for each in node.args:
                if isinstance(each, ast.Constant) and str(each.value).startswith("-"):
                    yield str(each.value)


def _classes(trees: list[ast.Module]) -> dict[str, ast.ClassDef]:
    return {node.name: node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _made(tree: ast.AST, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    """Names of the options that `ArgumentGroupFactory(Class, exclude=[…])` makes of the fields of a class."""
    for scope in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        lists = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(scope):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id != "ArgumentGroupFactory" or not isinstance(node.args[0], ast.Name):
                continue
            given = next((each.value for each in node.keywords if each.arg == "exclude"), None)
            value = lists.get(given.id) if isinstance(given, ast.Name) else given
            excluded = set(ast.literal_eval(value)) if value is not None else set()
            if (found := classes.get(node.args[0].id)) is not None:
                for name, field in _fields(found, classes):
                    if name not in excluded:
                        yield from _flags(name, field)


def _fields(found: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[tuple[str, ast.AnnAssign]]:
    """Fields of a dataclass, those of its bases first."""
    for base in found.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _fields(classes[base.id], classes)
    for node in found.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node


def _flags(name: str, field: ast.AnnAssign) -> Iterator[str]:
    default = field.value
    if isinstance(default, ast.Call):
        given = next((each.value for each in default.keywords if each.arg == "metadata"), None)
        for node in ast.walk(given) if given is not None else ():
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == "arg_names":
                        yield from ast.literal_eval(value)
                        return
        default = next((each.value for each in default.keywords if each.arg == "default"), None)
    option = name.replace("_", "-")
    if isinstance(default, ast.Constant) and default.value is True:
        yield from (f"--no-{option}", f"--disable-{option}")
    else:
        yield f"--{option}"


# ---------------------------------------------------------------- the lists


def source(repository: str) -> Path | None:
    """The git directory of a repository; None where it is not at hand."""
    folder = os.environ.get("FRAMEWORK_SOURCES")
    if not folder:
        return None
    place = Path(folder) / repository.replace("/", "+")
    return next((each for each in (place / "repo", place) if each.is_dir()), None)


def _reader(git: Path, version: str) -> Read:
    def read(path: str) -> str:
        command = ["git", "-C", str(git), "show", f"{version}:{path}"]
        shown = subprocess.run(command, capture_output=True, text=True, check=False)
        if shown.returncode:
            raise LookupError(path)
        return shown.stdout

    return read


def main() -> int:
    for program in PROGRAMS:
        git = source(program.repository)
        try:
            names = names_of(program, _reader(git, program.version)) if git else None
        except LookupError as missing:
            print(f"options of {program.name}: {program.version} has no {missing}; the list stays as it is")
            continue
        if names is None:
            print(f"options of {program.name}: no source of {program.repository}; the list stays as it is")
            continue
        head = f"# {program.repository} {program.version}: {', '.join(program.files)}"
        body = textwrap.wrap(" ".join(sorted(names)), 118, break_on_hyphens=False, break_long_words=False)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{program.name}.txt").write_text("\n".join((head, *body, "")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
