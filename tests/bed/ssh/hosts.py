"""Several hosts, a user with a key, and an `ssh_config` by hand: the first host directly, the others through it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.bed.ssh.host import USER, Host, new_key, why_not


@dataclass
class Hosts:
    """What the tests of one moment talk to."""

    folder: Path
    key: Path
    """The user's private key."""
    known: Path
    """Host keys of all of them."""
    config: Path
    by_name: Mapping[str, Host]

    def __getitem__(self, name: str) -> Host:
        return self.by_name[name]


@contextmanager
def hosts(folder: Path, *names: str) -> Iterator[Hosts]:
    """Hosts of these names; a jump goes through the first one. Skips the test where there is no sshd."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    folder.mkdir(parents=True, exist_ok=True)
    key = new_key(folder / "user_key")
    with ExitStack() as stack:
        made = {
            name: stack.enter_context(Host(name, folder / name, key.with_suffix(".pub"))) for name in names
        }  # fmt: skip
        known, config = folder / "known_hosts", folder / "ssh_config"
        known.write_text("".join(f"{name} {host.host_key}\n" for name, host in made.items()))
        config.write_text(_text(list(made.values()), key, known))
        yield Hosts(folder, key, known, config, made)


def _text(made: list[Host], key: Path, known: Path) -> str:
    first = made[0].name
    blocks = "".join(
        f"Host {host.name}\n  HostName {host.address}\n  Port {host.port}\n  HostKeyAlias {host.name}\n"
        + (f"  ProxyJump {first}\n" if host.name != first else "")
        for host in made
    )
    return blocks + (
        f"Host *\n  User {USER}\n  IdentityFile {key}\n  IdentitiesOnly yes\n  IdentityAgent none\n"
        f"  UserKnownHostsFile {known}\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n"
        "  ConnectTimeout 30\n  LogLevel ERROR\n  KexAlgorithms curve25519-sha256\n"
    )
