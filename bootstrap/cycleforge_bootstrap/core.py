"""What every step shares: paths, configuration, secrets, the log that hides them, and files written atomically."""

import base64
import json
import os
import stat
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, Optional
from urllib.parse import quote

PAYLOAD = Path(__file__).resolve().parent.parent.parent
"""The folder of this program, of its configuration and of what the cluster is made from."""


class StepError(Exception):
    """A step did not reach its goal. `permanent`: trying again cannot help. `hint`: what the operator can do.

    `cut_short`: the step's own limit ended the attempt, so this error does not tell the reason.
    """

    def __init__(self, message: str, hint: str = "", permanent: bool = False, cut_short: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.permanent = permanent
        self.cut_short = cut_short


class Paths:
    """Every place on the server that the program reads or writes, below a root that only tests move."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "var/lib/cycleforge"
        self.facts = self.home / "facts.json"
        self.secrets = self.home / "secrets.json"
        self.status = self.home / "status.json"
        self.state = self.home / "state.json"
        self.lock = self.home / "lock"
        self.work = self.home / "work"
        # Passwords that a program must read from a file are in memory only: /run is a tmpfs.
        self.runtime = root / "run/cycleforge"
        # HOME of the CLI: its login is there only as long as this program runs.
        self.cli_home = self.runtime / "home"
        self.log = root / "var/log/cycleforge/bootstrap.log"
        self.console = root / "dev/console"
        self.server = root / "opt/cycle_server"
        self.records = self.server / "config/data"
        self.root_home = root / "root"


def write_atomically(path: Path, content: bytes, mode: int = 0o600) -> None:
    """The whole new file or the whole old one, also after a power cut; created with its mode, never wider."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name("." + path.name + ".new")
    if beside.exists():
        beside.unlink()
    descriptor = os.open(str(beside), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    beside.replace(path)


def shred(path: Path) -> None:
    """Overwrite and remove a file; a missing one is fine. A link is removed, not followed."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISREG(info.st_mode):
        with path.open("r+b", buffering=0) as stream:
            stream.write(b"\0" * info.st_size)
            os.fsync(stream.fileno())
    path.unlink()


class Log:
    """Writes lines with the time to the journal (stdout) and the log file; every known secret is replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._hidden: List[str] = []

    def hide(self, secret: str) -> None:
        """Never show this text again, nor its usual encodings."""
        if not secret:
            return
        plain = base64.b64encode(secret.encode("utf-8")).decode("ascii")
        quoted = json.dumps(secret)[1:-1]
        forms = {secret, quoted, json.dumps(secret, ensure_ascii=False)[1:-1], plain, secret.replace("%", "%%")}
        forms |= {repr(secret)[1:-1], quote(secret, safe=""), secret.replace("'", "'\\''")}
        # The longest first: a short secret may be part of a longer one.
        self._hidden = sorted(set(self._hidden) | forms, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """The text without any secret."""
        for secret in self._hidden:
            text = text.replace(secret, "***")
        return text

    def write(self, text: str) -> None:
        """Log one message, which may have several lines."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = "".join("{} {}\n".format(stamp, line) for line in self.clean(text).splitlines() or [""])
        sys.stdout.write(lines)
        sys.stdout.flush()
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        descriptor = os.open(str(self._path), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(lines)


class Console:
    """The serial console, whose log Azure keeps: `cycleforge deploy` reads it while the first boot goes on.

    One line a step, in ASCII and without messages. Nothing waits for it: a full console, or none, is no matter.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, text: str) -> None:
        """One line, at once or not at all."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        line = "{} cycleforge-bootstrap: {}\n".format(stamp, " ".join(text.split()))
        try:
            descriptor = os.open(str(self._path), os.O_WRONLY | os.O_APPEND | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:
            return
        try:
            os.write(descriptor, line.encode("ascii", "replace"))
        except OSError:
            pass
        finally:
            os.close(descriptor)


class Clock:
    """Real time, but for tests: they shorten waits to `scale` of their seconds and count the rest as passed.

    What programs take counts as it is, so that a busy machine exhausts no limit; a program that hangs is ended after
    `scale` of its limit, but not before `patience_s` real seconds.
    """

    def __init__(self, scale: float, patience_s: float) -> None:
        self._scale = scale
        self._patience_s = patience_s
        self._skipped = 0.0

    def now(self) -> float:
        """Seconds since a point in the past."""
        return time.monotonic() + self._skipped

    def sleep(self, seconds: float) -> None:
        """Wait."""
        real = max(0.0, seconds) * self._scale
        time.sleep(real)
        self._skipped += max(0.0, seconds) - real

    def patience(self, limit: float) -> float:
        """Real seconds after which a program with this limit is ended."""
        return max(self._patience_s, limit * self._scale)

    def give_up(self, limit: float) -> None:
        """Count the whole limit as passed, after a program was ended."""
        self._skipped += max(0.0, limit - self.patience(limit))


class Context:
    """Configuration, facts, secrets, log and clock of one run."""

    def __init__(self, payload: Path, paths: Paths, environment: Dict[str, str]) -> None:
        self.payload = payload
        self.paths = paths
        self.environment = environment
        self.log = Log(paths.log)
        self.console = Console(paths.console)
        self.config = read_json(payload / "bootstrap/bootstrap.json")
        self.facts = read_json(paths.facts)
        self.secrets = read_json(paths.secrets) if paths.secrets.exists() else {}
        for secret in self.secrets.values():
            self.log.hide(str(secret))
        self.environment.update(proxy_variables(self.facts))
        self.state = read_json(paths.state) if paths.state.exists() else {}
        self.warnings: List[str] = []
        # What people and `start.sh` read in the status file besides the steps; see `Status`.
        self.shown: Dict[str, Any] = {}
        self.cyclecloud: Optional[Path] = None
        self.clock = Clock(
            float(environment.get("CYCLEFORGE_TIME_SCALE", "1")),
            float(environment.get("CYCLEFORGE_PATIENCE_S", "0.05")),
        )
        self.deadline = self.now() + float(self.config["limits"]["totalSeconds"])
        self.step_deadline = self.deadline

    def now(self) -> float:
        """Seconds of the clock that the limits are about."""
        return self.clock.now()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.clock.sleep(seconds)

    def remaining(self, at_most: float) -> float:
        """Seconds that a program may run now: its own limit or what is left of the step."""
        return max(0.05, min(at_most, self.step_deadline - self.now()))

    def fact(self, name: str) -> str:
        """A fact of the deployment as text; StepError if the deployment did not pass it."""
        value = self.facts.get(name)
        if value in (None, ""):
            raise StepError("the deployment did not pass the fact '{}'".format(name), permanent=True)
        return str(value)

    def secret(self, name: str) -> str:
        """A secret of the deployment; StepError if it has been removed."""
        value = self.secrets.get(name)
        if not value:
            raise StepError(
                "the secret '{}' is no longer on this server".format(name),
                hint="Run `sudo cycleforge-bootstrap retry`: it asks for the secret and continues.",
                permanent=True,
            )
        return str(value)

    def remember(self, key: str, value: Any) -> None:
        """Keep a result across restarts."""
        self.state[key] = value
        write_atomically(self.paths.state, to_json(self.state))


def proxy_variables(facts: Dict[str, Any]) -> Dict[str, str]:
    """What programs read: the CLI's installer wants `HTTPS_PROXY`, others the names in small letters.

    Source: azure-docs articles/cyclecloud/how-to/running-behind-proxy.md
    """
    url, exceptions = str(facts.get("proxyUrl") or ""), str(facts.get("noProxy") or "")
    if not url:
        return {}
    variables = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), url)
    variables.update({"no_proxy": exceptions, "NO_PROXY": exceptions})
    return variables


def read_json(path: Path) -> Dict[str, Any]:
    """A JSON object; StepError with the path if it is not one."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StepError("{} is missing".format(path), permanent=True) from None
    except ValueError as error:
        # Without the error's own text: it may quote the file.
        raise StepError("{} is not JSON ({})".format(path, type(error).__name__), permanent=True) from None
    if not isinstance(value, dict):
        raise StepError("{} does not contain a JSON object".format(path), permanent=True)
    return value


def to_json(value: Any) -> bytes:
    """Readable JSON with a final newline."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode("utf-8")


def tail(text: str, limit: int = 600) -> str:
    """The end of a program's output, for a message: the reason is usually there."""
    text = " ".join(text.split())
    return text if len(text) <= limit else "…" + text[-limit:]


def portal_url(context: Context) -> str:
    """The site as seen from the server itself, without a last slash."""
    port = context.config["server"]["httpsPort"]
    return context.environment.get("CYCLEFORGE_PORTAL", "https://localhost:{}".format(port))


def optional(value: Optional[str], fallback: str) -> str:
    """The value unless it is missing or empty."""
    return value if value else fallback
