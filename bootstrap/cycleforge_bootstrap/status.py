"""The one status file of the bootstrap, and how it reads."""

import time
from typing import Any, Dict, List, Optional, Sequence

from . import STATUS_SCHEMA
from .core import Context, Paths, StepError, optional, portal_url, read_json, to_json, write_atomically

CODES = {"succeeded": 0, "failed": 1}
"""Exit status of a run that has ended, by its state."""


def utc_now() -> str:
    """Time of day as ISO 8601, UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Status:
    """`status.json`: written whole after every change, so that a reader never finds half of it."""

    def __init__(self, context: Context, steps: Sequence[Any]) -> None:
        self._context = context
        before = _previous(context.paths)
        self.document: Dict[str, Any] = {
            "schema": STATUS_SCHEMA,
            "deployment": context.config["name"],
            "cluster": (context.config["cluster"] or {}).get("name"),
            "payloadSha256": context.facts.get("payloadSha256"),
            "state": "running",
            "started": before.get("started") or utc_now(),
            "finished": None,
            # How often the program has started with this payload: more than once after a reboot.
            "runs": int(before.get("runs") or 0) + 1,
            "step": None,
            "message": "",
            "hint": "",
            "warnings": [],
            # Set by the steps: certificate and host keys; program, version and login line of the CLI.
            "site": {"address": portal_url(context)},
            "cli": {},
            "steps": [
                {"name": s.name, "title": s.title, "state": "pending", "attempts": 0, "seconds": 0, "message": "",
                 "hint": ""}
                for s in steps
            ],
        }  # fmt: skip

    def step(self, name: str, **changes: Any) -> None:
        """Change one step and write the file."""
        for entry in self.document["steps"]:
            if entry["name"] == name:
                entry.update(changes)
        self.document["step"] = name
        self.write()

    def finish(self, state: str, message: str, hint: str) -> None:
        """Record the end of a run."""
        self.document.update({"state": state, "finished": utc_now(), "message": message, "hint": hint})
        self.write()

    def write(self) -> None:
        """Write the file; no text in it contains a secret."""
        self.document["warnings"] = list(self._context.warnings)
        self.document.update(self._context.shown)
        write_atomically(self._context.paths.status, to_json(_cleaned(self.document, self._context)), 0o644)


def _cleaned(document: Dict[str, Any], context: Context) -> Dict[str, Any]:
    """The document without secrets in its free texts; names and states remain, even if a password equals one."""

    def texts(entry: Dict[str, Any]) -> Dict[str, Any]:
        return dict(entry, message=context.log.clean(entry["message"]), hint=context.log.clean(entry["hint"]))

    warnings = [context.log.clean(text) for text in document["warnings"]]
    return dict(texts(document), warnings=warnings, steps=[texts(entry) for entry in document["steps"]])


def _previous(paths: Paths) -> Dict[str, Any]:
    """What an interrupted run of this bootstrap recorded, else nothing."""
    document = read_status(paths)
    return document if document is not None and document.get("state") == "running" else {}


def read_status(paths: Paths) -> Optional[Dict[str, Any]]:
    """The status file, or None if it is missing or cannot be read."""
    try:
        return read_json(paths.status)
    except StepError:
        return None


def summary(document: Optional[Dict[str, Any]]) -> str:
    """A few lines of text: every step, then what went wrong and what to do."""
    if document is None:
        return "CycleForge bootstrap: not started yet\n"
    lines: List[str] = ["CycleForge bootstrap of {deployment}: {state}".format(**document)]
    for step in document["steps"]:
        note = "  " + step["message"] if step["message"] else ""
        lines.append("  {:<9} {:>5.0f} s  {}{}".format(step["state"], step["seconds"], step["title"], note))
    lines.extend("warning: " + text for text in document["warnings"])
    site, cli = document.get("site") or {}, document.get("cli") or {}
    if site.get("certificateSha256"):
        lines.append("certificate of the site, SHA-256: {}".format(site["certificateSha256"]))
        lines.extend("SSH host key: {type} {fingerprint}".format(**key) for key in site["sshHostKeys"])
    if cli.get("login"):
        lines.append("your own login of the CycleCloud CLI: " + cli["login"])
    if document["state"] == "failed":
        lines.append("error: step '{}': {}".format(optional(document["step"], "start"), document["message"]))
    if document["hint"]:
        lines.append("hint: " + document["hint"])
    return "\n".join(lines) + "\n"
