"""The stand-in `bicep`: `build FILE --stdout`, `build-params FILE [--bicep-file FILE] --stdout`, `--version`.

`placed(folder)` writes a program of that name, which compiles with compiler.py of this folder. The files `broken` and
`version` beside it, if they are there, are what it says instead, the first with exit code 1. It writes the environment
in which it was started into `environment.json`, and into `made/` what it has compiled: most tests compile what others
have compiled before them.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-cli (commands, exit code 1 on errors),
Azure/bicep:src/Bicep.Cli/Models/ParametersStdout.cs (what build-params prints),
Azure/bicep:src/Bicep.Core/Diagnostics/DiagnosticBuilder.cs (BCP338, what cannot be evaluated in a parameter file)
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from pathlib import Path

VERSION = "Bicep CLI version 0.46.1 (0000000000)"
_ROOT = Path(__file__).resolve().parents[3]
_VARIABLE = re.compile(r"readEnvironmentVariable\('(\w+)'")


def placed(folder: Path) -> Path:
    """A program `bicep` in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bicep"
    # Without the environment's own modules, which take longer to find than most answers.
    text = f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(_ROOT)!r})\n"
    text += "from tests.bed.bicep.program import main\nsys.exit(main(sys.argv[1:], sys.argv[0]))\n"
    program.write_text(text)
    program.chmod(0o755)
    return program


def main(words: list[str], program: str) -> int:
    """What the program does."""
    beside = Path(program).parent
    if words == ["--version"]:
        version = beside / "version"
        print(version.read_text().strip() if version.exists() else VERSION)
        return 0
    (beside / "environment.json").write_text(json.dumps(dict(os.environ)))
    if (beside / "broken").exists():
        print((beside / "broken").read_text(), file=sys.stderr)
        return 1
    given = [word for word in words[1:] if word != "--stdout"]
    if words[0] not in ("build", "build-params") or "--stdout" not in words or given[1:2] not in ([], ["--bicep-file"]):
        print(f"the stand-in does not know: bicep {' '.join(words)}", file=sys.stderr)
        return 1
    path = Path(given[0]).resolve()
    made = beside / "made" / _digest(path, words[0])
    return _show(made) if made.exists() else _compile(path, words[0], made)


def _digest(path: Path, command: str) -> str:
    """Tells whether all is as it was: the files below the folder by their times, and the variables that are read."""
    found = [command, str(path.name)]
    for each in sorted(path.parent.rglob("*")):
        status = each.stat()
        found.append(f"{each.relative_to(path.parent)} {status.st_size} {status.st_mtime_ns if each.is_file() else 0}")
    found += [f"{name}={os.environ.get(name)}" for name in sorted(set(_VARIABLE.findall(path.read_text())))]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()


def _show(made: Path) -> int:
    sys.stdout.write(made.read_text())
    return 0


def _compile(path: Path, command: str, made: Path) -> int:
    from .values import EvaluationError

    try:
        content = _built(path) if command == "build" else _parameters(path)
    except EvaluationError as error:
        print(f"{path.name}(1,1) : Error BCP338: {error}", file=sys.stderr)
        return 1
    made.parent.mkdir(exist_ok=True)
    beside = made.with_suffix(f".{os.getpid()}")
    beside.write_text(json.dumps(content, indent=2) + "\n")
    beside.rename(made)
    return _show(made)


def _built(path: Path) -> object:
    from .compiler import compiled

    return compiled(path)


def _parameters(path: Path) -> object:
    from .compiler import compiled
    from .parameter_file import parameters_of

    using, parameters = parameters_of(path.read_text(), os.environ)
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"
    file = {"$schema": schema, "contentVersion": "1.0.0.0", "parameters": parameters}
    template = compiled(path.parent / using)
    return {"parametersJson": json.dumps(file), "templateJson": json.dumps(template), "templateSpecId": None}
