"""The CycleCloud CLI of a server, as its releases are known to behave."""

from __future__ import annotations

import json
from configparser import ConfigParser, RawConfigParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.bed.server.fakes.accounts import encode
from tests.bed.server.fakes.clusters import Clusters

if TYPE_CHECKING:
    from tests.bed.server.fakes.state import State


class CommandLine:
    def __init__(self, site: State) -> None:
        self._site = site
        self.clusters = Clusters(site)

    def run(self, argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        environment = dict(line.split("=", 1) for line in request["environment"].split("\0") if "=" in line)
        # Azure/azurehpc scripts/cyclecli_install.sh removes it: the CLI fails with another program's packages.
        if "PYTHONPATH" in environment:
            return {"status": 1, "errors": "ModuleNotFoundError: No module named 'cyclecli'\n"}
        if argv == ["--version"]:
            return {"output": f"CycleCloud {self._site.cli.build}\n"}
        # `~/.cycle/config.ini`; an official container script sets HOME for exactly that.
        config = Path(environment["HOME"]) / ".cycle/config.ini"
        if argv[0] == "initialize":
            return self._initialize(argv, config)
        if not self._knows_user(config):
            return {"status": 1, "errors": "**** Error: Invalid username or password\n"}
        words = [word for word in argv if not word.startswith("--")]
        if words[0] in self.clusters.handlers:
            return self.clusters.run([word for word in argv if word != "--force"])
        handlers = {"account": self.account, "project": self._upload, "import_template": self._import_template,
                    "import_cluster": self._import_cluster}  # fmt: skip
        return handlers[words[0]](words, argv, request)

    def _dialogue(self, argv: list[str]) -> dict[str, Any]:
        """A question to someone who is not there."""
        self._site.dialogues.append(argv)
        return {"status": 1, "output": "CycleServer password: ", "errors": "EOFError: EOF when reading a line\n"}

    def _initialize(self, argv: list[str], config: Path) -> dict[str, Any]:
        """Lines and exit status as in the logs of Azure/HPC-Accelerator; without `--batch` it asks (transcripts)."""
        given = dict(word[2:].split("=", 1) for word in argv if word.startswith("--") and "=" in word)
        if "--batch" not in argv or not {"url", "username", "password", "verify-ssl"} <= given.keys():
            return self._dialogue(argv)
        if self._site.cli.initialize == "asks in spite of --batch":
            # Nothing reads the question, so the real one would end like this; it is no dialogue that we have opened.
            return {"status": 1, "output": "Account Name: ", "errors": "EOFError: EOF when reading a line\n"}
        if self._site.cli.initialize == "refuses":
            return {"status": 1, "errors": "**** Error: cannot be initialized\n"}
        if not self._site.accounts.accept(given["username"], given["password"]):
            return {"status": 1, "errors": "**** Error: Invalid username or password\n"}
        key = encode(given["password"]) if self._site.cli.initialize == "works" else "?"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(
            f"[cycleserver]\nby=initialize\nurl={given['url']}\nusername={given['username']}\nkey={key}\n"
            f"verify_certificates={given['verify-ssl']}\n"
        )
        known = "Initial account already exists, skipping initial account creation.\n" if self._site.account else ""
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
        if foreign and (not self._site.cli.reads_cycleserver or config.stat().st_mode & 0o077):
            return False
        users = {encode(password): user for user, password in self._site.accounts.passwords.items()}
        known = users.get(section.get("key", "")) == section["username"] and section["url"] == self._site.portal
        password = self._site.accounts.passwords.get(section["username"], "") if known else ""
        return self._site.accounts.accept(section["username"], password)

    def account(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        if words[1] == "show":
            # Exit status 0 also when there is no such account: log of CLI 8.2.2, and cyclecloud_install.py of CCWS.
            if self._site.account:
                return {"output": "Credentials: azure\n"}
            if self._site.cli.absent == "in other words":
                return {"output": "no such credentials\n"}
            return {"output" if self._site.cli.absent == "on stdout" else "errors": "Account not found\n"}
        if "-f" not in words:
            return self._dialogue(argv)
        if self._site.faults.strikes("account_refused"):
            return {
                "status": 1,
                "errors": "Error: AuthorizationFailed: the identity has no access to the subscription\n",
            }
        if self._site.account is not None:
            return {"status": 1, "errors": "Error: account exists\n"}
        if not self._site.faults.strikes("account_silent"):
            self._site.account = json.loads(Path(words[words.index("-f") + 1]).read_text())
            self._site.locker_state = "Error" if self._site.faults.locker_retries else "Created"
        return {"output": "created\n"}

    def _upload(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        folder = Path(request["folder"])
        ini = ConfigParser()
        ini.read(folder / "project.ini")
        name, version = ini["project"]["name"], ini["project"]["version"]
        if words[1:] != ["upload", "azure-storage"] or self._site.locker_state != "Created":
            return {"status": 1, "errors": "Error: no such locker\n"}
        if self._site.faults.upload_hangs_without_terminal and not request["terminal"]:
            return {"hang": True}
        left = self._site.faults.upload_fails.get(name, 0)
        if left:
            self._site.faults.upload_fails[name] = left - 1
            return {"status": 1, "errors": f"Error: azcopy failed on {name}\n"}
        (folder / "build").mkdir(exist_ok=True)  # as the real one, which builds into the project's folder
        files = [path for path in sorted((folder / "specs").rglob("*")) if path.is_file()]
        if self._site.faults.strikes("file_missing"):
            files.pop()
        for path in files:
            self._site.blobs[f"projects/{name}/{version}/{path.relative_to(folder / 'specs')}"] = path.read_bytes()
        lists = [ini[section]["files"] for section in ini.sections() if section.startswith("blobs")]
        for listed in (word.strip() for words in lists for word in words.split(",")):  # no other file of blobs/
            self._site.blobs[f"projects/{name}/blobs/{listed}"] = (folder / "blobs" / listed).read_bytes()
        if not self._site.faults.strikes("manifest_missing"):
            self._site.blobs[f"projects/{name}/{version}/manifest.json"] = b'{"blobs": []}'
        return {"output": "Upload complete!\n"}

    def _import_template(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        text = Path(words[words.index("-f") + 1]).read_text()
        if f"[cluster {words[words.index('-c') + 1]}]" not in text:
            return {"status": 1, "errors": "Error: no such template in the file\n"}
        self._site.templates[words[1]] = text
        return {}

    def _import_cluster(self, words: list[str], argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        text = Path(words[words.index("-f") + 1]).read_text()
        parameters = Path(words[words.index("-p") + 1])
        if parameters.stat().st_mode & 0o077 or f"[cluster {words[words.index('-c') + 1]}]" not in text:
            return {"status": 1, "errors": "Error: cannot import\n"}
        if words[1] in self._site.clusters and "--force" not in argv:
            return {"status": 1, "errors": f"Error: Cluster {words[1]} already exists\n"}
        if self._site.faults.strikes("cluster_refused"):
            return {
                "status": 1,
                "errors": "Error: Parameter UsePublicNet is not known (referenced by node scheduler)\n",
            }
        if not self._site.faults.strikes("import_silent"):
            imported = {"text": text, "parameters": json.loads(parameters.read_text())}
            self._site.clusters.setdefault(words[1], {"started": None}).update(imported)
        return {}
