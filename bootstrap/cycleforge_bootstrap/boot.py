"""One run of the first boot, and how an operator lets it continue."""

import fcntl
import getpass
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Callable, Dict, List, Optional

from .core import PAYLOAD, Context, Paths, StepError, read_json, shred, to_json, write_atomically
from .runner import run_steps
from .site import clean_records
from .status import CODES, Status, read_status, summary
from .steps import steps_of

UNIT = "cycleforge-bootstrap.service"


def run(paths: Paths, environment: Dict[str, str]) -> int:
    """One run, as the unit starts it; its exit status."""
    os.umask(0o077)
    # The unit spares other processes when it is stopped; ours are ended by the way out of `programs.run`.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    paths.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(str(paths.lock), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.stderr.write("another bootstrap is running\n")
        return 4
    before = read_status(paths)
    sha = _payload_of(paths)
    if before and before.get("state") in CODES and before.get("payloadSha256") == sha:
        # The unit starts at every boot. After a failure someone must run `retry`: the secrets are gone.
        sys.stdout.write(summary(before))
        return CODES[before["state"]]
    try:
        context = Context(PAYLOAD, paths, environment)
    except (StepError, KeyError) as error:
        return _cannot_start(paths, str(error))
    steps = steps_of(context)
    status = Status(context, steps)
    prepare(context)
    context.log.write("run {} of payload {}".format(status.document["runs"], sha))
    problem = run_steps(context, steps, status)
    left = _forget_secrets(context)
    if left:
        context.warnings.append("not removed: {}".format(", ".join(left)))
    if problem is None:
        status.finish("succeeded", "", "")
    else:
        status.finish("failed", problem.message, problem.hint)
    context.log.write(summary(read_status(paths)))
    return 0 if problem is None else 1


def _payload_of(paths: Paths) -> Optional[str]:
    try:
        return str(read_json(paths.facts).get("payloadSha256"))
    except StepError:
        return None


def _cannot_start(paths: Paths, message: str) -> int:
    document = {
        "schema": 1, "deployment": "?", "cluster": "?", "payloadSha256": _payload_of(paths), "state": "failed",
        "started": None, "finished": None, "runs": 1, "step": None, "message": message, "hint": "Deploy again.",
        "warnings": [], "steps": [],
    }  # fmt: skip
    write_atomically(paths.status, to_json(document), 0o644)
    sys.stderr.write(summary(document))
    return 1


def prepare(context: Context) -> None:
    """Remove what a killed run may have left: it can contain secrets."""
    paths = context.paths
    clean_records(context)
    _shred_tree(paths.runtime)
    for folder in (paths.runtime, paths.cli_home, paths.work):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _shred_tree(folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or path.is_file():
            shred(path)
    # The folder itself may belong to systemd (RuntimeDirectory).
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir()


def _forget_secrets(context: Context) -> List[str]:
    """Remove every secret and everything that may contain one; return the paths that could not be removed."""
    paths = context.paths
    actions: Dict[Path, Callable[[Path], None]] = {
        paths.secrets: shred,
        # The login of the CLI is there, and its upload jobs with signed addresses of the locker.
        paths.runtime: _shred_tree,
        paths.work: lambda folder: shutil.rmtree(str(folder)),
        paths.records: lambda _: clean_records(context),
    }
    left: List[str] = []
    for path, remove in actions.items():
        try:
            remove(path)
        except OSError as error:
            context.log.write("{} could not be removed: {}".format(path, error))
            left.append(str(path))
    return left


def _asked(question: str, rules: List[List[str]]) -> str:
    """A secret that keeps to the rules of the deployment, each a text and the pattern of a whole secret."""
    while True:
        typed = getpass.getpass(question + ": ")
        broken = [text for text, pattern in rules if not re.fullmatch(pattern, typed, re.DOTALL)]
        if not broken:
            return typed
        sys.stderr.write("It must have {}.\n".format("; ".join(broken)))


def retry(paths: Paths) -> int:
    """Ask for the missing secrets and start the unit again."""
    config = read_json(PAYLOAD / "bootstrap/bootstrap.json")
    secrets = read_json(paths.secrets) if paths.secrets.exists() else {}
    for name, question in config["secrets"].items():
        if not secrets.get(name):
            secrets[name] = _asked(question, config["secretRules"][name])
    write_atomically(paths.secrets, to_json(secrets))
    if paths.status.exists():
        paths.status.replace(paths.status.with_name("status.previous.json"))
    subprocess.run(["systemctl", "restart", "--no-block", UNIT], check=True)
    sys.stdout.write("Started. Follow it with: sudo cycleforge-bootstrap status\n")
    return 0
