"""A CycleCloud server, an Azure and a locker in one object, which fail as the real ones are known to."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import re
import selectors
import signal
import socket
import ssl
import threading
import time
from configparser import ConfigParser, RawConfigParser
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlparse
from xml.sax.saxutils import escape

from tests.bed.server.fakes.accounts import Accounts, encode
from tests.bed.server.fakes.releases import CLI_8_6_1, Release

TOKEN = "fake-token-of-the-servers-identity"


@dataclass
class Faults:
    """How often something fails before it works; 999 is for ever."""

    slow_start: int = 0
    no_import: int = 0
    ignored_records: int = 0
    """So many files of records are never imported, however long they lie there."""
    no_token: int = 0
    account_refused: int = 0
    account_silent: int = 0
    locker_retries: int = 0
    upload_fails: dict[str, int] = field(default_factory=dict)
    upload_hangs_without_terminal: bool = False
    manifest_missing: int = 0
    file_missing: int = 0
    list_refused: int = 0
    list_page: int = 5000
    checksums: bool = True
    token_expired: int = 0
    arm_refused: int = 0
    arm_running: int = 0
    arm_no_output: int = 0
    arm_failed: str = ""
    arm_missing: str = ""
    damaged_chunk: bool = False
    import_silent: int = 0
    cluster_refused: int = 0
    machine_types_late: int = 0
    scheduler_polls: int = 0
    scheduler_fails: bool = False
    record_refused: int = 0
    kill_before: str = ""
    kill_after: str = ""


class Site:
    """State of the fakes, their network side, and a record of every call."""

    def __init__(
        self,
        root: Path,
        facts: dict[str, Any],
        chunks: dict[str, bytes],
        certificate: Path,
        scale: float = 1.0,
    ) -> None:
        """`certificate` is a PEM file with key and certificate of the portal; `scale` as in `Accounts`."""
        self.root = root
        self.certificate = certificate
        self.accounts = Accounts(scale)
        self.cli: Release = CLI_8_6_1
        self.dialogues: list[list[str]] = []
        """Calls that opened a dialogue: none may."""
        self.records: dict[str, dict[str, Any]] = {}
        """Templates of the deployments that the server itself has written, by name."""
        self.facts = facts
        self.chunks = chunks
        self.faults = Faults()
        self.calls: list[dict[str, Any]] = []
        self.running = True
        self.settings: dict[str, Any] = {}
        self.keys: dict[str, str] = {}
        self.known_projects: list[dict[str, Any]] = []
        self.account: dict[str, Any] | None = None
        self.locker_state = ""
        self.locker_asked: list[float] = []
        self.blobs: dict[str, bytes] = {}
        self.templates: dict[str, str] = {}
        self.clusters: dict[str, dict[str, Any]] = {}
        self.program: int | None = None
        self._expired = False
        self._ignored: set[tuple[int, int]] = set()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._wake, self._asleep = socket.socketpair()
        self._servers: list[Any] = []
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------ network side

    def start(self, ports: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Listen on three ports, by default free ones, of the loopback interface and begin to import records."""
        site = self

        class Web(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:  # http.server's name
                self.respond(*site.get(self.path, dict(self.headers)))

            def do_PUT(self) -> None:  # http.server's name
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self.respond(*site.put(self.path, dict(self.headers), body))

            def respond(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Programs(StreamRequestHandler):
            def handle(self) -> None:
                # A program that ended with its caller does not send all of it, or does not read the answer any more.
                with contextlib.suppress(OSError, ValueError):
                    words = [self.word() for _ in range(int(self.word()))]
                    answer = site.answer(words)
                    self.wfile.write("".join(f"{text}\0" for text in answer).encode())

            def word(self) -> str:
                word = bytearray()
                while (byte := self.rfile.read(1)) != b"\0":
                    if not byte:
                        raise ValueError("ended early")
                    word += byte
                return word.decode()

        ThreadingTCPServer.daemon_threads = True
        web, programs, portal = (("127.0.0.1", port) for port in ports)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.certificate)
        secure = ThreadingHTTPServer(portal, Web)
        secure.socket = tls.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        self._servers = [ThreadingHTTPServer(web, Web), ThreadingTCPServer(programs, Programs), secure]
        for target in (self._accept, self._import_records):
            thread = threading.Thread(target=target, daemon=True)
            self._threads.append(thread)
            thread.start()
        self.url = f"http://127.0.0.1:{self._servers[0].server_address[1]}"
        self.port = self._servers[1].server_address[1]
        self.portal = f"https://127.0.0.1:{secure.server_address[1]}"

    def stop(self) -> None:
        """Close all ports."""
        self._stop.set()
        self._wake.close()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            server.server_close()

    def _accept(self) -> None:
        """One thread waits for all ports, so that a server on which nothing happens costs nothing."""
        with selectors.DefaultSelector() as ready, self._asleep:
            ready.register(self._asleep, selectors.EVENT_READ)
            for server in self._servers:
                ready.register(server, selectors.EVENT_READ, server)
            while not self._stop.is_set():
                for key, _ in ready.select():
                    if key.data:
                        key.data.handle_request()

    def get(self, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
        """One web request: instance metadata, Resource Manager, blobs, portal."""
        url = urlparse(target)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        with self._lock:
            if url.path.startswith("/metadata/"):
                return self._metadata(url.path, headers)
            if "/deployments/" in url.path:
                return self._deployment(url.path.rsplit("/", 1)[1], headers)
            if asked.get("comp") == "list":
                return self._list(asked, headers)
            if url.path == "/ui/metadata":
                return (200, b"{}") if self._is_up() else (503, b"starting")
            if url.path.startswith("/clusters/"):
                return self._cluster_status(url.path.split("/")[2], headers)
        return 404, b"no such page"

    def _metadata(self, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if headers.get("Metadata") != "true":
            return 400, b'{"error": "invalid_request"}'
        if "identity" not in path:
            return 200, json.dumps({"publicKeys": [{"keyData": "ssh-ed25519 FROM-THE-VM\n"}]}).encode()
        if self._fails("no_token"):
            return 400, b'{"error": {"code": "invalid_request", "message": "Identity not found"}}'
        self._expired = False
        return 200, json.dumps({"access_token": TOKEN, "expires_in": "86399"}).encode()

    def _refuses_token(self) -> bool:
        """A token that has expired stays so: only a new one helps. The metadata service may give one that is hours old.

        Source: https://learn.microsoft.com/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
        """
        self._expired = self._expired or self._fails("token_expired")
        return self._expired

    def put(self, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """A deployment that the server itself writes; with Contributor in its group it may.

        Source: https://learn.microsoft.com/rest/api/resources/deployments/create-or-update
        """
        path = urlparse(target).path
        if "/deployments/" not in path:
            return 405, b""
        with self._lock:
            if headers.get("Authorization") != f"Bearer {TOKEN}" or self._fails("record_refused"):
                message = (
                    "The client does not have authorization to perform action 'Microsoft.Resources/deployments/write'"
                )
                return 403, json.dumps({"error": {"code": "AuthorizationFailed", "message": message}}).encode()
            properties = json.loads(body)["properties"]
            assert properties["mode"] == "Incremental", "Complete would delete everything in the group"
            self.records[path.rsplit("/", 1)[1]] = properties["template"]
        return 201, b'{"properties": {"provisioningState": "Accepted"}}'

    def _deployment(self, name: str, headers: dict[str, str]) -> tuple[int, bytes]:
        if name in self.records:
            outputs = self.records[name]["outputs"]
            return 200, json.dumps({"properties": {"provisioningState": "Succeeded", "outputs": outputs}}).encode()
        if self._refuses_token():
            return 401, b'{"error": {"code": "ExpiredAuthenticationToken", "message": "The access token has expired."}}'
        if headers.get("Authorization") != f"Bearer {TOKEN}" or self._fails("arm_refused"):
            message = "The client does not have authorization to perform action 'Microsoft.Resources/deployments/read'"
            return 403, json.dumps({"error": {"code": "AuthorizationFailed", "message": message}}).encode()
        if name not in self.chunks or name == self.faults.arm_missing:
            message = f"Deployment '{name}' could not be found."
            return 404, json.dumps({"error": {"code": "DeploymentNotFound", "message": message}}).encode()
        content = self.chunks[name]
        if self.faults.damaged_chunk:
            content = content[:-1] + bytes([content[-1] ^ 1])
        outputs = {"content": {"type": "String", "value": base64.b64encode(content).decode()}}
        state = "Running" if self._fails("arm_running") else "Succeeded"
        if name == self.faults.arm_failed:
            state = "Failed"
        if state != "Succeeded" or self._fails("arm_no_output"):
            outputs = {}
        return 200, json.dumps({"properties": {"provisioningState": state, "outputs": outputs}}).encode()

    def _list(self, asked: dict[str, str], headers: dict[str, str]) -> tuple[int, bytes]:
        if headers.get("Authorization") != f"Bearer {TOKEN}" or self._fails("list_refused"):
            return 403, b"<Error><Code>AuthorizationPermissionMismatch</Code></Error>"
        names = sorted(name for name in self.blobs if name.startswith(asked["prefix"]))
        names = [name for name in names if name > asked.get("marker", "")]
        page, rest = names[: self.faults.list_page], names[self.faults.list_page :]
        rows = "".join(self._row(name) for name in page)
        marker = escape(page[-1]) if rest else ""
        return 200, (
            f"<?xml version='1.0' encoding='utf-8'?><EnumerationResults><Blobs>{rows}</Blobs>"
            f"<NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()

    def _row(self, name: str) -> str:
        content = self.blobs[name]
        md5 = base64.b64encode(hashlib.md5(content).digest()).decode() if self.faults.checksums else ""
        return (
            f"<Blob><Name>{escape(name)}</Name><Properties><Content-Length>{len(content)}</Content-Length>"
            f"<Content-MD5>{md5}</Content-MD5></Properties></Blob>"
        )

    def _cluster_status(self, name: str, headers: dict[str, str]) -> tuple[int, bytes]:
        kind, _, pair = headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(pair or "").decode().partition(":")
        if kind != "Basic" or not self.accounts.accept(user, password):
            return 401, b"unauthorized"
        return (200, b"{}") if name in self.clusters else (404, b"no such cluster")

    # ------------------------------------------------------------ programs

    def answer(self, words: list[str]) -> tuple[str, str, str]:
        """What one call of a faked program ends with: its exit status, output and errors."""
        name, folder, process, parent, terminal, *argv = words
        environment = Path(f"/proc/{process}/environ").read_bytes().decode()
        answer = self.call({"name": name, "argv": argv, "folder": folder, "parent": int(parent),
                            "terminal": terminal == "yes", "environment": environment})  # fmt: skip
        status = "hang" if answer.get("hang") else str(answer.get("status", 0))
        return status, answer.get("output", ""), answer.get("errors", "")

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """What a faked program prints and how it ends."""
        with self._lock:
            self.calls.append(request)
        argv = request["argv"]
        words = " ".join(word for word in argv if not word.startswith("-"))
        name = f"{request['name']} {words}"
        if self._kill("kill_before", name, request):
            return {"status": 137}
        with self._lock:
            answer: dict[str, Any] = getattr(self, "_" + request["name"])(argv, request)
        if self._kill("kill_after", name, request):
            return {"status": 137}
        return answer

    def _kill(self, fault: str, name: str, request: dict[str, Any]) -> bool:
        """A power cut at this moment: the bootstrap itself gets SIGKILL."""
        if not getattr(self.faults, fault) or not re.match(getattr(self.faults, fault), name):
            return False
        setattr(self.faults, fault, "")
        os.kill(request["parent"], signal.SIGKILL)
        return True

    def _fails(self, fault: str) -> bool:
        left = getattr(self.faults, fault)
        if left:
            setattr(self.faults, fault, left - 1)
        return bool(left)

    def _jetpack(self, argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        return {"status": 1, "errors": "jetpack is for nodes, not for the server\n"}

    def _is_up(self) -> bool:
        return self.running and self.faults.slow_start == 0

    def _cycle_server(self, argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        if argv[0] in ("start", "stop"):
            self.running = argv[0] == "start"
            return {}
        if argv[0] == "await_startup":
            if not self.running:
                return {"status": 1, "errors": "CycleServer is not running\n"}
            if self._fails("slow_start"):
                return {"status": 1, "errors": "CycleServer did not start in time\n"}
            return {}
        if not self._is_up():
            return {"status": 1, "errors": "Unable to connect to CycleServer\n"}
        if argv[0] == "run_action" and argv[1] == "Retry:Cloud.Locker":
            self.locker_asked.append(time.monotonic())
            self.faults.locker_retries -= 1
            if self.account is not None and self.faults.locker_retries <= 0:
                self.locker_state = "Created"
            return {}
        if argv[0] == "run_action" and argv[1:] == [
            "Run:Application.Timer",
            "-eq",
            "Name",
            "plugin.azure.monitor_reference",
        ]:
            return {}
        if argv[:3] == ["execute", "--format", "json"]:
            records = self._query(argv[3])
            if records is not None:
                return {"output": json.dumps(records) + "\n"}
        return {"status": 1, "errors": f"unknown command: {argv}\n"}

    def _query(self, text: str) -> list[dict[str, Any]] | None:
        """Records of the queries that the bootstrap uses; None for one that the server would not understand."""
        strings = re.findall(r'"([^"]*)"', text)
        if "FROM Application.Setting" in text:
            return [{"Name": strings[0], "Value": self.settings[strings[0]]}] if strings[0] in self.settings else []
        if "FROM AuthenticatedUser" in text:
            return [{"Name": strings[0]}] if strings[0] in self.accounts.passwords else []
        if "FROM Credential" in text:
            return [{"Name": strings[0]}] if strings[0] in self.keys else []
        if "FROM Cloud.Project" in text:
            return [p for p in self.known_projects if [p["Name"], p["Version"]] == strings]
        if "FROM Cloud.Locker" in text:
            wanted = self.locker_state == "Created" or "State==" not in text
            record = {"Name": "azure-storage", "State": self.locker_state, "StatusMessage": "Staging resources"}
            return [record] if self.locker_state and wanted else []
        if "OUTER JOIN Azure.MachineType" in text:
            late = self._fails("machine_types_late")
            abstract = {"Name": "nodearraybase", "MachineType": None, "CMName": None}
            return [abstract, {"Name": "htc", "MachineType": None if late else "x", "CMName": "x"}]
        if "FROM Cloud.Cluster" in text:
            return [{"ClusterName": strings[0]}] if strings[0] in self.clusters else []
        if "FROM Cloud.Node" in text:
            status = self._scheduler(strings[0]) if strings[0] in self.clusters else ""
            return [{"Name": "scheduler", "State": "Unknown", "Status": status}] if status else []
        return None

    def _scheduler(self, cluster: str) -> str:
        if not self.clusters[cluster].get("started"):
            return "Off"
        if self.faults.scheduler_fails:
            return "Failed"
        return "Preparing" if self._fails("scheduler_polls") else "Ready"

    def _cyclecloud(self, argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        environment = dict(line.split("=", 1) for line in request["environment"].split("\0") if "=" in line)
        # Azure/azurehpc scripts/cyclecli_install.sh removes it: the CLI fails with another program's packages.
        if "PYTHONPATH" in environment:
            return {"status": 1, "errors": "ModuleNotFoundError: No module named 'cyclecli'\n"}
        if argv == ["--version"]:
            return {"output": f"CycleCloud {self.cli.build}\n"}
        # `~/.cycle/config.ini`; an official container script sets HOME for exactly that.
        config = Path(environment["HOME"]) / ".cycle/config.ini"
        if argv[0] == "initialize":
            return self._initialize(argv, config)
        if not self._knows_user(config):
            return {"status": 1, "errors": "**** Error: Invalid username or password\n"}
        words = [word for word in argv if not word.startswith("--")]
        handlers = {"account": self._account, "project": self._upload, "import_template": self._import_template,
                    "import_cluster": self._import_cluster, "start_cluster": self._start_cluster}  # fmt: skip
        return handlers[words[0]](words, argv, request)

    def _dialogue(self, argv: list[str]) -> dict[str, Any]:
        """A question to someone who is not there."""
        self.dialogues.append(argv)
        return {"status": 1, "output": "CycleServer password: ", "errors": "EOFError: EOF when reading a line\n"}

    def _initialize(self, argv: list[str], config: Path) -> dict[str, Any]:
        """Lines and exit status as in the logs of Azure/HPC-Accelerator; without `--batch` it asks (transcripts)."""
        given = dict(word[2:].split("=", 1) for word in argv if word.startswith("--") and "=" in word)
        if "--batch" not in argv or not {"url", "username", "password", "verify-ssl"} <= given.keys():
            return self._dialogue(argv)
        if self.cli.initialize == "asks in spite of --batch":
            # Nothing reads the question, so the real one would end like this; it is no dialogue that we have opened.
            return {"status": 1, "output": "Account Name: ", "errors": "EOFError: EOF when reading a line\n"}
        if self.cli.initialize == "refuses":
            return {"status": 1, "errors": "**** Error: cannot be initialized\n"}
        if not self.accounts.accept(given["username"], given["password"]):
            return {"status": 1, "errors": "**** Error: Invalid username or password\n"}
        key = encode(given["password"]) if self.cli.initialize == "works" else "?"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f"[cycleserver]\nby=initialize\nurl={given['url']}\nusername={given['username']}\nkey={key}\n"
            f"verify_certificates={given['verify-ssl']}\n"
        )
        known = "Initial account already exists, skipping initial account creation.\n" if self.account else ""
        return {"output": f"Welcome to CycleCloud!\n{known}CycleCloud configuration stored in {config}\n"}

    def _knows_user(self, config: Path) -> bool:
        """The section `[cycleserver]` of gingi/cyclecloud-agent-plugin test_official_cli.py; any other is no login."""
        if not config.exists():
            return False
        parser = RawConfigParser()
        parser.read(config)
        if not parser.has_section("cycleserver"):
            return False
        section = parser["cycleserver"]
        foreign = "by" not in section
        if foreign and (not self.cli.reads_cycleserver or config.stat().st_mode & 0o077):
            return False
        users = {encode(password): user for user, password in self.accounts.passwords.items()}
        known = users.get(section.get("key", "")) == section["username"] and section["url"] == self.portal
        password = self.accounts.passwords.get(section["username"], "") if known else ""
        return self.accounts.accept(section["username"], password)

    def _account(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        if words[1] == "show":
            # Exit status 0 also when there is no such account: log of CLI 8.2.2, and cyclecloud_install.py of CCWS.
            if self.account:
                return {"output": "Credentials: azure\n"}
            if self.cli.absent == "in other words":
                return {"output": "no such credentials\n"}
            return {"output" if self.cli.absent == "on stdout" else "errors": "Account not found\n"}
        if "-f" not in words:
            return self._dialogue(argv)
        if self._fails("account_refused"):
            return {
                "status": 1,
                "errors": "Error: AuthorizationFailed: the identity has no access to the subscription\n",
            }
        if self.account is not None:
            return {"status": 1, "errors": "Error: account exists\n"}
        if not self._fails("account_silent"):
            self.account = json.loads(Path(words[words.index("-f") + 1]).read_text())
            self.locker_state = "Error" if self.faults.locker_retries else "Created"
        return {"output": "created\n"}

    def _upload(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        folder = Path(request["folder"])
        ini = ConfigParser()
        ini.read(folder / "project.ini")
        name, version = ini["project"]["name"], ini["project"]["version"]
        if words[1:] != ["upload", "azure-storage"] or self.locker_state != "Created":
            return {"status": 1, "errors": "Error: no such locker\n"}
        if self.faults.upload_hangs_without_terminal and not request["terminal"]:
            return {"hang": True}
        left = self.faults.upload_fails.get(name, 0)
        if left:
            self.faults.upload_fails[name] = left - 1
            return {"status": 1, "errors": f"Error: azcopy failed on {name}\n"}
        (folder / "build").mkdir(exist_ok=True)  # as the real one, which builds into the project's folder
        files = [path for path in sorted((folder / "specs").rglob("*")) if path.is_file()]
        if self._fails("file_missing"):
            files.pop()
        for path in files:
            self.blobs[f"projects/{name}/{version}/{path.relative_to(folder / 'specs')}"] = path.read_bytes()
        lists = [ini[section]["files"] for section in ini.sections() if section.startswith("blobs")]
        for listed in (word.strip() for words in lists for word in words.split(",")):  # no other file of blobs/
            self.blobs[f"projects/{name}/blobs/{listed}"] = (folder / "blobs" / listed).read_bytes()
        if not self._fails("manifest_missing"):
            self.blobs[f"projects/{name}/{version}/manifest.json"] = b'{"blobs": []}'
        return {"output": "Upload complete!\n"}

    def _import_template(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        text = Path(words[words.index("-f") + 1]).read_text()
        if f"[cluster {words[words.index('-c') + 1]}]" not in text:
            return {"status": 1, "errors": "Error: no such template in the file\n"}
        self.templates[words[1]] = text
        return {}

    def _import_cluster(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        text = Path(words[words.index("-f") + 1]).read_text()
        parameters = Path(words[words.index("-p") + 1])
        if parameters.stat().st_mode & 0o077 or f"[cluster {words[words.index('-c') + 1]}]" not in text:
            return {"status": 1, "errors": "Error: cannot import\n"}
        if words[1] in self.clusters and "--force" not in argv:
            return {"status": 1, "errors": f"Error: Cluster {words[1]} already exists\n"}
        if self._fails("cluster_refused"):
            return {
                "status": 1,
                "errors": "Error: Parameter UsePublicNet is not known (referenced by node scheduler)\n",
            }
        if not self._fails("import_silent"):
            started = self.clusters.get(words[1], {}).get("started")
            self.clusters[words[1]] = {
                "text": text,
                "parameters": json.loads(parameters.read_text()),
                "started": started,
            }
        return {}

    def _start_cluster(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        self.clusters[words[1]]["started"] = True
        return {}

    # ------------------------------------------------------------ records

    def _import_records(self) -> None:
        """The server's own thread: takes files of the import folder and renames them."""
        folder = self.root / "opt/cycle_server/config/data"
        while not self._stop.wait(0.01):
            # Whoever dropped a file may have taken it back, or the folder.
            with contextlib.suppress(FileNotFoundError), self._lock:
                for name in sorted(os.listdir(folder)):  # noqa: PTH208 - a hundred times a second, without a Path each
                    path = folder / name
                    if name.endswith((".json", ".txt")) and self._is_up() and not self._ignores(path):
                        self._import(path)
                        path.rename(path.with_name(path.name + ".imported"))

    def _ignores(self, path: Path) -> bool:
        info = path.stat()
        file = (info.st_ino, info.st_mtime_ns)
        if file not in self._ignored and self._fails("ignored_records"):
            self._ignored.add(file)
        return file in self._ignored or self._fails("no_import")

    def _import(self, path: Path) -> None:
        if path.suffix == ".txt":
            pairs = dict(line.split(" = ", 1) for line in path.read_text().splitlines())
            self.known_projects.append({key: json.loads(value) for key, value in pairs.items()})
            return
        content = json.loads(path.read_text())
        for record in content if isinstance(content, list) else [content]:
            if record["AdType"] == "AuthenticatedUser":
                self.accounts.passwords[record["Name"]] = record["RawPassword"]
            elif record["AdType"] == "Credential":
                self.keys[record["Name"]] = record["PublicKey"]
            else:
                self.settings[record["Name"]] = record["Value"]
