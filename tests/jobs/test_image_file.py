"""The Dockerfile of the recipe `mpt`: everything that it takes from elsewhere has one version, that of the catalogue.

It is not built here: that needs Docker, the network and hours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from generator.files import assets
from generator.recipes.versions import pin

FOLDER = assets.folder("recipes") / "mpt/image"
DOCKERFILE = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
CONSTRAINTS = (FOLDER / "constraints.txt").read_text(encoding="utf-8")
PINNED = re.compile(r"([a-z0-9.-]+)==([0-9][A-Za-z0-9.]*)")
IMAGE = re.compile(r"[a-z0-9./-]+(?::(?!latest)[A-Za-z0-9._-]+|@sha256:[0-9a-f]{64})")
INSTALLS = r"--no-cache-dir --constraint /opt/constraints\.txt (?:--no-build-isolation )?(?:--editable )?(.*)"


def instructions(text: str) -> Iterator[tuple[str, str]]:
    """Each instruction and its words; lines that a backslash continues are one."""
    joined = re.sub(r"\\\n\s*", "", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    for line in filter(None, joined.splitlines()):
        yield tuple(line.split(" ", 1))  # type: ignore[misc]


def constraints(text: str) -> dict[str, str]:
    found = [PINNED.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    assert all(found), "a line that is not name==version"
    return {match[1]: match[2] for match in found if match}


def problems(text: str, packages: dict[str, str]) -> Iterator[str]:
    """What has no version, is fetched from elsewhere, or is not known to this reader."""
    arguments: dict[str, str] = {}
    for name, words in instructions(text):
        if name == "ARG":
            key, _, value = words.partition("=")
            arguments[key] = value
            if key.endswith("_COMMIT") and not re.fullmatch(r"[0-9a-f]{40}", value):
                yield f"{key} is no commit of 40 digits"
        elif name == "FROM":
            base = re.sub(r"\$\{(\w+)\}", lambda match: arguments.get(match[1], ""), words)
            if not IMAGE.fullmatch(base):
                yield f"FROM {base} has no version"
        elif name == "COPY":
            if words != "constraints.txt /opt/constraints.txt":
                yield f"COPY {words} is not known"
        elif name == "RUN":
            yield from command_problems(words, packages)
        else:
            yield f"{name} is not known"


def command_problems(words: str, packages: dict[str, str]) -> Iterator[str]:
    for command in words.split(" && "):
        if command.startswith("git "):
            fetched = re.search(r" fetch .* (\S+)$", command)
            if " clone " in command or (fetched and fetched[1] != '"${LLM_FOUNDRY_COMMIT}"'):
                yield f"{command}: not by commit"
        elif command.startswith("python3 -m pip install "):
            taken = re.fullmatch(f"python3 -m pip install {INSTALLS}", command)
            if taken is None:
                yield f"{command}: not with the constraints"
                continue
            for each in taken[1].split():
                if each != '"/llm-foundry[gpu]"' and each not in packages:
                    yield f"{each} has no version"
        elif command != "python3 -m pip check":
            yield f"{command} is not known"


def test_everything_has_one_version() -> None:
    assert list(problems(DOCKERFILE, constraints(CONSTRAINTS))) == []


def test_versions_are_those_of_the_catalogue() -> None:
    given = dict(words.split("=", 1) for name, words in instructions(DOCKERFILE) if name == "ARG")
    assert f"docker://{given['BASE']}" == pin("containers/mosaicml-pytorch/reference")
    assert given["LLM_FOUNDRY_COMMIT"] == pin("frameworks/llm-foundry/commit")
    assert given["LLM_FOUNDRY_URL"] == pin("frameworks/llm-foundry/url")
    packages = constraints(CONSTRAINTS)
    for package, place in (
        ("mosaicml", "frameworks/composer/version"),
        ("mosaicml-streaming", "frameworks/streaming/version"),
        ("torch", "frameworks/torch/version"),
        ("nvidia-nccl-cu12", "containers/mosaicml-pytorch/nccl"),
    ):
        assert packages[package] == pin(place)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("mosaicml/pytorch:2.6.0_cu124-python3.11-ubuntu22.04", "mosaicml/pytorch:latest", "has no version"),
        ("mosaicml/pytorch:2.6.0_cu124-python3.11-ubuntu22.04", "mosaicml/pytorch", "has no version"),
        ("b24705178b119bc8e746dca3b6c567cabf03d3bf", "release/v0.18.0", "no commit of 40 digits"),
        ('"${LLM_FOUNDRY_COMMIT}" && \\\n    git -C', "main && \\\n    git -C", "not by commit"),
        ("ninja packaging psutil", "ninja packaging ipython", "ipython has no version"),
        ("--constraint /opt/constraints.txt --no-build-isolation flash-attn", "flash-attn", "not with the constraints"),
        ("python3 -m pip check", "curl -fsSL https://example.com/install.sh | sh", "is not known"),
        ("COPY constraints.txt", "ADD https://example.com/x", "ADD is not known"),
    ],
)
def test_what_has_no_version_is_found(old: str, new: str, problem: str) -> None:
    assert old in DOCKERFILE
    found = list(problems(DOCKERFILE.replace(old, new), constraints(CONSTRAINTS)))
    assert any(problem in each for each in found), found
