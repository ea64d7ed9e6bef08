"""Steps that upload the cluster-init projects to the locker and verify that they are there."""

import base64
import configparser
import hashlib
import shutil
from pathlib import Path
from typing import Any, Dict, List, Tuple

from .cli import cyclecloud, must
from .core import Context, StepError
from .web import Azure

Expected = Dict[str, Tuple[int, str]]
"""Blob name → (bytes, base64 MD5)."""


def expected_blobs(folder: Path, name: str, version: str) -> Expected:
    """What an upload of a project puts into the locker, without `manifest.json`, whose bytes the CLI decides.

    Only `specs/<spec>/cluster-init/**` is uploaded unchanged, and the blobs of project.ini; StepError when one of
    those is not there.
    Source: azure-docs articles/cyclecloud/how-to/projects.md
    """
    found: Expected = {}
    for path in sorted((folder / "specs").rglob("*")):
        parts = path.relative_to(folder / "specs").parts
        if path.is_file() and len(parts) > 2 and parts[1] == "cluster-init":
            found["projects/{}/{}/{}".format(name, version, "/".join(parts))] = _figures(path)
    for listed in _listed_blobs(folder / "project.ini"):
        paths = [path for path in sorted((folder / "blobs").glob(listed)) if path.is_file()]
        if not paths and not any(sign in listed for sign in "*?["):
            text = "project '{}' lists the blob '{}', which is not part of the deployment".format(name, listed)
            raise StepError(text, hint="Build and deploy again.", permanent=True)
        for path in paths:
            relative = path.relative_to(folder / "blobs").as_posix()
            found["projects/{}/blobs/{}".format(name, relative)] = _figures(path)
    return found


def _figures(path: Path) -> Tuple[int, str]:
    content = path.read_bytes()
    return len(content), base64.b64encode(hashlib.md5(content).digest()).decode("ascii")  # noqa: S324 - Azure's checksum


def _listed_blobs(ini: Path) -> List[str]:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(ini.read_text(encoding="utf-8"))
    names: List[str] = []
    for section in parser.sections():
        if section.split()[0] == "blobs":
            names += [item.strip() for item in parser.get(section, "files", fallback="").split(",") if item.strip()]
    return names


class Upload:
    """One project: its check and its action."""

    def __init__(self, project: Dict[str, Any]) -> None:
        self.name = str(project["name"])
        self.version = str(project["version"])
        self.digest = str(project["digest"])
        self._attempts = 0

    @property
    def _key(self) -> str:
        return "{}/{}".format(self.name, self.version)

    def _folder(self, context: Context) -> Path:
        return context.payload / "projects" / self.name

    def is_there(self, context: Context) -> bool:
        """The manifest and every file are in the locker, with the right content, not only the right size."""
        missing, proven = self._compare(context)
        if missing:
            return False
        return proven or context.state.get("projects", {}).get(self._key) == self.digest

    def upload(self, context: Context) -> None:
        """Upload from a working copy (the CLI writes a build folder), then check what arrived."""
        # A project that is being uploaded again must not count as uploaded if this is interrupted.
        self._record(context, None)
        source = self._folder(context)
        if not (source / "project.ini").exists():
            raise StepError("the payload has no project '{}'".format(self.name), permanent=True)
        work = context.paths.work / "projects" / self.name
        shutil.rmtree(str(work), ignore_errors=True)
        shutil.copytree(str(source), str(work))
        self._attempts += 1
        arguments = ["project", "upload", context.config["locker"]]
        limit = float(context.config["limits"]["uploadSeconds"])
        try:
            # Every second attempt on a terminal: one release of the CLI is said to hang without.
            must(cyclecloud(context, arguments, limit, folder=work, terminal=self._attempts % 2 == 0))
        except StepError as error:
            text = "project '{}' was not uploaded: {}".format(self._key, error.message)
            raise StepError(text, error.hint, error.permanent, error.cut_short) from None
        missing, _ = self._compare(context)
        if missing:
            shown = ", ".join(missing[:3]) + (" and {} more".format(len(missing) - 3) if len(missing) > 3 else "")
            raise StepError("the upload of project '{}' succeeded, but the locker lacks {}".format(self._key, shown))
        self._record(context, self.digest)

    def _compare(self, context: Context) -> Tuple[List[str], bool]:
        """Names that are missing or have another size or checksum, and whether checksums verify the rest."""
        azure = Azure(context)
        prefix = "projects/{}/".format(self.name)
        there = azure.blobs("{}{}/".format(prefix, self.version))
        wanted = expected_blobs(self._folder(context), self.name, self.version)
        if any(name.startswith(prefix + "blobs/") for name in wanted):
            there.update(azure.blobs(prefix + "blobs/"))
        missing: List[str] = []
        proven = True
        for name, (size, checksum) in sorted(wanted.items()):
            have = there.get(name)
            if have is None or have[0] != size or (have[1] and have[1] != checksum):
                missing.append(name)
            elif not have[1]:
                proven = False
        manifest = "{}{}/manifest.json".format(prefix, self.version)
        if there.get(manifest, (0, ""))[0] == 0:
            missing.append(manifest)
        return missing, proven

    def _record(self, context: Context, digest: Any) -> None:
        projects = dict(context.state.get("projects", {}))
        projects[self._key] = digest
        context.remember("projects", projects)
