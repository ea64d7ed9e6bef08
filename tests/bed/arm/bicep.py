"""The stand-in `bicep`: `build FILE --stdout`, `build-params FILE --stdout`, `--version`.

`placed(folder)` writes a program of that name; `Arm.environment` has it in front of PATH. It compiles with
tests/bed/bicep/compiler.py; the file `broken` beside it, if there is one, is what it says instead, with exit code 1.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-cli (commands, exit code 1 on errors),
Azure/bicep:src/Bicep.Cli/Models/ParametersStdout.cs (what build-params prints),
Azure/bicep:src/Bicep.Core/Diagnostics/DiagnosticBuilder.cs (BCP338, what cannot be evaluated in a parameter file)
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

VERSION = "Bicep CLI version 0.46.1 (0000000000)"
_ROOT = Path(__file__).resolve().parents[3]


def placed(folder: Path) -> Path:
    """A program `bicep` in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "bicep"
    text = f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(_ROOT)!r})\n"
    text += "from tests.bed.arm.bicep import main\nsys.exit(main(sys.argv[1:], sys.argv[0]))\n"
    program.write_text(text)
    program.chmod(0o755)
    return program


def main(words: list[str], program: str) -> int:
    """What the program does."""
    broken = Path(program).with_name("broken")
    if words == ["--version"]:
        version = Path(program).with_name("version")
        print(version.read_text().strip() if version.exists() else VERSION)
        return 0
    if broken.exists():
        print(broken.read_text(), file=sys.stderr)
        return 1
    from tests.bed.bicep.values import EvaluationError

    try:
        print(json.dumps(_made(words), indent=2))
    except EvaluationError as error:
        print(f"{words[1] if len(words) > 1 else ''}(1,1) : Error BCP338: {error}", file=sys.stderr)
        return 1
    return 0


def _made(words: list[str]) -> object:
    from tests.bed.bicep.values import EvaluationError

    if len(words) != 3 or words[0] not in ("build", "build-params") or words[2] != "--stdout":
        raise EvaluationError(f"the stand-in does not know: bicep {' '.join(words)}")
    return _built(Path(words[1])) if words[0] == "build" else _parameters(Path(words[1]))


def _built(path: Path) -> object:
    from tests.bed.bicep.compiler import compiled

    return compiled(path)


def _parameters(path: Path) -> object:
    from tests.bed.bicep.compiler import compiled
    from tests.bed.bicep.parameter_file import parameters_of

    using, parameters = parameters_of(path.read_text(), os.environ)
    schema = "https://schema.management.azure.com/schemas/2019-04-01/deploymentParameters.json#"
    file = {"$schema": schema, "contentVersion": "1.0.0.0", "parameters": parameters}
    template = compiled(path.parent / using)
    return {"parametersJson": json.dumps(file), "templateJson": json.dumps(template), "templateSpecId": None}
