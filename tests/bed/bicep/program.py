"""The stand-in `bicep`: `build FILE --stdout`, `build-params FILE [--bicep-file FILE] --stdout`, `--version`.

`placed(folder)` writes a program of that name, which compiles with compiler.py of this folder, or with Microsoft's
compiler where there is one (tests/bicep/compilers.py). The files `broken` and
`version` beside it, if they are there, are what it says instead, the first with exit code 1. It writes the environment
in which it was started into `environment`, and into `made/` what it has compiled: most tests compile what others have
compiled before them. Then the start of Python is all that takes time, so nothing is imported that only compiling needs.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-cli (commands, exit code 1 on errors),
Azure/bicep:src/Bicep.Cli/Models/ParametersStdout.cs (what build-params prints),
Azure/bicep:src/Bicep.Core/Diagnostics/DiagnosticBuilder.cs (BCP338, what cannot be evaluated in a parameter file)
"""

# Importing pathlib or typing takes as long as starting Python.
# ruff: noqa: PTH100, PTH103, PTH104, PTH110, PTH116, PTH120, PTH123

from __future__ import annotations

import os
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSION = "Bicep CLI version 0.46.1 (0000000000)"
_ROOT = __file__.rsplit("/", 4)[0]
_PROGRAM = """\
#!/bin/sh
if [ "$*" = --version ]; then
    said='{version}'
    [ ! -e "${{0%/*}}/version" ] || read -r said <"${{0%/*}}/version" || :
    echo "$said"
    exit 0
fi
# Without the environment's own modules, which take longer to find than most answers.
exec '{python}' -IS -c 'import sys
sys.path.insert(0, "{root}")
from tests.bed.bicep.program import main
sys.exit(main(sys.argv[2:], sys.argv[1], "{compiler}"))' "$0" "$@"
"""
_VARIABLE = "readEnvironmentVariable('"
_OVERRIDES = "BICEP_PARAMETERS_OVERRIDES"


def placed(folder: Path) -> Path:
    """A program `bicep` in this folder."""
    from tests.bicep import compilers

    folder.mkdir(parents=True, exist_ok=True)
    compiler = compilers.program() if compilers.version() else ""
    program = folder / "bicep"
    program.write_text(_PROGRAM.format(version=VERSION, python=sys.executable, root=_ROOT, compiler=compiler))
    program.chmod(0o755)
    return program


def main(words: list[str], program: str, compiler: str) -> int:
    """What the program does; `compiler` is empty where it compiles itself."""
    beside = os.path.dirname(program)
    with open(f"{beside}/environment", "w", encoding="utf-8") as file:
        file.write(repr(dict(os.environ)))
    if os.path.exists(f"{beside}/broken"):
        with open(f"{beside}/broken", encoding="utf-8") as file:
            print(file.read(), file=sys.stderr)
        return 1
    given = [word for word in words[1:] if word != "--stdout"]
    if words[0] not in ("build", "build-params") or "--stdout" not in words or given[1:2] not in ([], ["--bicep-file"]):
        print(f"the stand-in does not know: bicep {' '.join(words)}", file=sys.stderr)
        return 1
    path = os.path.abspath(given[0])
    key = "\n".join(_key(words[0], path)).encode() + b"\n\n"
    made = f"{beside}/made/{zlib.crc32(key):08x}"
    if _shown(made, key):
        return 0
    content = _compiled_by(compiler, words) if compiler else _compiled(path, words[0])
    if content is None:
        return 1
    _keep(content, made, key)
    sys.stdout.buffer.write(content)
    return 0


def _key(command: str, path: str) -> Iterator[str]:
    """All that the result depends on: the files below the folder by their times, and the variables that are read."""
    folder, name = os.path.split(path)
    yield f"{command} {name}"
    for place, folders, files in os.walk(folder):
        folders.sort()
        for each in sorted(files):
            status = os.stat(f"{place}/{each}")
            yield f"{place[len(folder) :]}/{each} {status.st_size} {status.st_mtime_ns}"
    with open(path, encoding="utf-8") as file:
        read = {each.partition("'")[0] for each in file.read().split(_VARIABLE)[1:]}
    for variable in sorted({_OVERRIDES, *read}):
        yield f"{variable}={os.environ.get(variable)!r}"


def _shown(made: str, key: bytes) -> bool:
    """Whether it was made of the same before; what is kept begins with what it was made of."""
    try:
        with open(made, "rb") as file:
            kept = file.read()
    except FileNotFoundError:
        return False
    if not kept.startswith(key):
        return False
    sys.stdout.buffer.write(kept[len(key) :])
    return True


def _compiled_by(compiler: str, words: list[str]) -> bytes | None:
    import subprocess

    done = subprocess.run([compiler, *words], stdout=subprocess.PIPE, check=False)
    return done.stdout if done.returncode == 0 else None


def _compiled(name: str, command: str) -> bytes | None:
    import json
    from pathlib import Path

    from .values import EvaluationError

    path = Path(name)
    try:
        content = _built(path) if command == "build" else _parameters(path)
    except EvaluationError as error:
        print(f"{path.name}(1,1) : Error BCP338: {error}", file=sys.stderr)
        return None
    return (json.dumps(content, indent=2) + "\n").encode()


def _keep(content: bytes, made: str, key: bytes) -> None:
    os.makedirs(os.path.dirname(made), exist_ok=True)
    beside = f"{made}.{os.getpid()}"
    with open(beside, "wb") as file:
        file.write(key + content)
    os.rename(beside, made)


def _built(path: Path) -> object:
    from .compiler import compiled

    return compiled(path)


def _parameters(path: Path) -> object:
    import json

    from .compiler import compiled
    from .parameter_file import parameters_of

    using, parameters = parameters_of(path.read_text(), os.environ)
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"
    file = {"$schema": schema, "contentVersion": "1.0.0.0", "parameters": parameters}
    template = compiled(path.parent / using)
    return {"parametersJson": json.dumps(file), "templateJson": json.dumps(template), "templateSpecId": None}
