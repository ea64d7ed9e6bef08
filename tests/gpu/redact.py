"""Replace what identifies a machine by placeholders of the same length, the same everywhere in one capture."""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from pathlib import Path

UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])")
_TAG = re.compile(r"(<([a-z_]*(?:serial|guid)[a-z_]*)>)([^<]+)(</\2>)")
_LABEL = re.compile(r"(?im)^(\s*[a-z ]*(?:serial|guid)[a-z ]*:\s*)(\S+)$")
_PROGRAM = re.compile(r"(<process_name>)([^<]+)(</process_name>)")
_MAC = re.compile(r"(?<![0-9a-fA-F:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![0-9a-fA-F:])")
_NOTHING = re.compile(r"\[?(N/A|Not .*|Unknown.*|0+|0x0+)\]?", re.IGNORECASE)
_SENDER = re.compile(r"^([0-9.]+ )\S+( kernel:)")
KERNEL = re.compile(r"NVRM|nvidia|NVLink", re.IGNORECASE)


def host_names() -> list[str]:
    """Names of this machine, the longest first."""
    names = {socket.gethostname()}
    for file in ("/etc/hostname", "/proc/sys/kernel/hostname"):
        with suppress(OSError):
            names.add(Path(file).read_text(encoding="utf-8").strip())
    names |= {name.split(".")[0] for name in names}
    return sorted((name for name in names if len(name) > 2 and name != "localhost"), key=len, reverse=True)


class Redactor:
    """Remembers what it has replaced: a second GPU gets a second placeholder."""

    def __init__(self, serials: list[str], hosts: list[str]) -> None:
        self.places: dict[str, str] = {}
        self.hosts = hosts
        for serial in serials:
            self._serial(serial)

    def _serial(self, value: str) -> str:
        if not value or _NOTHING.fullmatch(value):
            return value
        start = "0x" if value.lower().startswith("0x") else ""
        digits = len(value) - len(start)
        number = sum(not UUID.fullmatch(each) for each in self.places) + 1
        return self.places.setdefault(value, start + f"{number:0{digits}d}"[-digits:])

    def _uuid(self, match: re.Match[str]) -> str:
        value = match.group().lower()
        if not value.strip("0-"):
            return match.group()
        number = sum(UUID.fullmatch(each) is not None for each in self.places) + 1
        return self.places.setdefault(value, f"00000000-0000-0000-0000-{number:012d}")

    def text(self, text: str) -> str:
        """The text as it may be published."""
        text = UUID.sub(self._uuid, text)
        text = _TAG.sub(lambda match: match.group(1) + self._serial(match.group(3)) + match.group(4), text)
        text = _LABEL.sub(lambda match: match.group(1) + self._serial(match.group(2)), text)
        text = _PROGRAM.sub(r"\1program\3", text)
        text = _MAC.sub("00:00:00:00:00:00", text)
        for value, place in sorted(self.places.items(), key=lambda pair: -len(pair[0])):
            if not UUID.fullmatch(value):
                text = re.sub(rf"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])", place, text)
        for host in self.hosts:
            text = re.sub(rf"(?<![0-9A-Za-z-]){re.escape(host)}(?![0-9A-Za-z-])", "node-1", text, flags=re.IGNORECASE)
        return text

    def left(self, text: str) -> list[str]:
        """What identifies the machine and is in the text all the same."""
        words = [*self.places, *self.hosts]
        return [
            word
            for word in words
            if re.search(rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])", text, re.IGNORECASE)
        ]


def of_kernel(text: str) -> str:
    """The first line of a kernel log and those about the GPUs; others are about the machine."""
    lines = [_SENDER.sub(r"\1node-1\2", line) for line in text.splitlines()]
    return "".join(f"{line}\n" for place, line in enumerate(lines) if place == 0 or KERNEL.search(line))
