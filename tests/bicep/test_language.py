"""The Bicep release that README asks for is the oldest that knows everything that we write."""

from __future__ import annotations

import re

from generator.files import assets
from tests.bed.plans import plan_from
from tests.bicep.compilers import MODULES
from tests.readme.test_readme import rendered

SINCE = {
    r"^\s*\.\.\.\(": "0.27.1",  # spread
    r"\b(?:map|filter)\([^\n]*\(\w+, \w+\) =>": "0.27.1",  # lambdas that get the index
    r"\bmapValues\(": "0.27.1",
    r"\breadEnvironmentVariable\(": "0.18.4",
    r"\bdeployer\(": "0.32.4",
    r"\bloadDirectoryFileInfo\(": "0.38.3",
}
"""What we write, or may come to write → first release. Source: the commit of each in https://github.com/Azure/bicep, by
`git describe --contains`."""


def release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def test_readme_asks_for_the_release_that_the_files_need() -> None:
    folder = assets.folder("bicep_templates")
    texts = [path.read_text() for path in (*MODULES, *folder.glob("main.*.j2"))]
    needed = {since for pattern, since in SINCE.items() for text in texts if re.search(pattern, text, re.MULTILINE)}
    readme = rendered(plan_from())
    (asked,) = re.findall(r"with Bicep (\d+\.\d+\.\d+) or later", readme)
    assert release(asked) == max(map(release, needed))
    assert "\naz bicep upgrade\n" in readme
