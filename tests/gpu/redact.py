"""Replace what identifies a machine by placeholders of the same length, the same everywhere in one capture."""

from __future__ import annotations

import json
import re
import socket
from contextlib import suppress
from pathlib import Path

UUID = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9a-fA-F])")
# What a driver shows of one device alone, up to 610: serial numbers of GPU and chassis, PDI, GUID in the fabric. Slot
# and tray are places in a rack, the board ID is its PCI bus. Source: utkuozdemir/nvidia_gpu_exporter, internal/captures
_TAG = re.compile(r"(<([a-z_]*(?:serial|guid|pdi|ecid)[a-z_]*)>)([^<]+)(</\2>)")
_LABEL = re.compile(r"(?im)^(\s*[a-z ]*(?:serial|guid|pdi|ecid)[a-z ]*:[ \t]*)(\S+)(\s*)$")
_KEY = re.compile(r"(?i)(\"[a-z_ ]*(?:serial|guid|pdi|ecid)[a-z_ ]*\"\s*:\s*\")([^\"]+)(\")")
# nvidia-smi ends a line behind each tag, and escapes nothing within.
_PROGRAM = re.compile(r"(?s)(<process_name>).*?(</process_name>[ \t\r]*(?:\n|$))")
_MAC = re.compile(r"(?<![0-9a-fA-F:])[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}(?![0-9a-fA-F:])")
_NOTHING = re.compile(r"\[?(N/A|Not .*|Unknown.*|0+|0x0+)\]?", re.IGNORECASE)
KERNEL = re.compile(r"NVRM: |nvidia(-[a-z]+\d*)?[: ]|\[drm[^]]*\] \[nvidia-drm\]", re.IGNORECASE)
"""How a record of the driver begins; behind the name of a program that crashed, "nvidia" may be one of its files."""
_OF_XID = re.compile(r"(\bpid=[^,]*, name=).*?(?=, |$)")
_KEPT = {"MESSAGE", "SYSLOG_FACILITY", "_KERNEL_DEVICE", "__REALTIME_TIMESTAMP", "__MONOTONIC_TIMESTAMP"}
_IDENTITY = {"__CURSOR", "__SEQNUM_ID", "_BOOT_ID", "_MACHINE_ID"}
SHORTEST = 6
"""A shorter number of a device is replaced in its own place only: elsewhere the same digits are something else."""
NO_GPU_IN_IT = "a record that is not about a GPU"
ARCHITECTURES = {"volta", "turing", "ampere", "ada", "lovelace", "hopper", "blackwell", "rubin"}
"""Words of the driver that no script of ours has."""


def host_names() -> list[str]:
    """Names of this machine, the longest first."""
    names = {socket.gethostname()}
    for file in ("/etc/hostname", "/proc/sys/kernel/hostname"):
        with suppress(OSError):
            names.add(Path(file).read_text(encoding="utf-8").strip())
    names |= {name.split(".")[0] for name in names}
    return sorted((name for name in names if len(name) > 2 and name != "localhost"), key=len, reverse=True)


def names_to_hide(names: list[str], texts: list[str]) -> list[str]:
    """The names without those that are a word of these texts: such a word names no machine, and is needed there.

    A host may be called `gpu` or `h100`. Its name with a domain is no such word, and where a record of the journal has
    the host's name it is replaced whatever it is.
    """
    spoken = {word for text in texts for word in _WORD.findall(text.lower())} | ARCHITECTURES
    return [name for name in names if name.lower() not in spoken]


_WORD = re.compile(r"[0-9a-z-]+")


def _host(name: str) -> re.Pattern[str]:
    """A name of a host as a word of its own: none of its parts, no part of an identifier, no tag."""
    return re.compile(rf"(?<![0-9A-Za-z_<-])(?<!</){re.escape(name)}(?![0-9A-Za-z_-])", re.IGNORECASE)


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
        text = UUID.sub(self._uuid, text)
        text = _TAG.sub(lambda match: match.group(1) + self._serial(match.group(3)) + match.group(4), text)
        for form in (_LABEL, _KEY):
            text = form.sub(lambda match: match.group(1) + self._serial(match.group(2)) + match.group(3), text)
        text = _PROGRAM.sub(r"\1program\2", text)
        text = _MAC.sub("00:00:00:00:00:00", text)
        for value, place in sorted(self.places.items(), key=lambda pair: -len(pair[0])):
            if not UUID.fullmatch(value) and len(value) >= SHORTEST:
                text = re.sub(rf"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])", place, text)
        for host in self.hosts:
            text = _host(host).sub("node-1", text)
        return text

    def left(self, text: str) -> list[str]:
        """What identifies the machine and is in the text all the same."""
        values = [
            value
            for value in self.places
            if len(value) >= SHORTEST
            and re.search(rf"(?<![0-9A-Za-z]){re.escape(value)}(?![0-9A-Za-z])", text, re.IGNORECASE)
        ]
        return values + [host for host in self.hosts if _host(host).search(text)]


def of_kernel(text: str) -> str:
    """The kernel's records about GPUs, one line of JSON each, as `journalctl --output=json` prints them.

    Others are about the machine; where there are only those, one is kept without its text: the log is not empty.
    """
    lines: list[str] = []
    others: list[str] = []
    for line in text.splitlines():
        if not line.startswith("{"):  # what journalctl says in place of records
            lines.append(line)
            continue
        try:
            record = json.loads(line)
        except ValueError:  # cut off
            continue
        if record.get("SYSLOG_FACILITY") != "0":
            continue
        message = record.get("MESSAGE")
        if isinstance(message, list):
            message = bytes(each for each in message if isinstance(each, int) and 0 <= each < 256).decode(
                "utf-8", "replace"
            )
        about_gpus = KERNEL.match(str(message))
        record["MESSAGE"] = _OF_XID.sub(r"\1program", str(message)) if about_gpus else NO_GPU_IN_IT
        kept = {key: _harmless(key, value) for key, value in record.items() if key in _KEPT | _IDENTITY | {"_HOSTNAME"}}
        (lines if about_gpus else others).append(json.dumps(kept, separators=(",", ":"), ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines or others[:1])


def _harmless(key: str, value: object) -> object:
    if key == "_HOSTNAME":
        return "node-1"
    return (
        re.sub(r"(?<![a-z])[0-9a-f]+(?!=)", lambda match: "0" * len(match.group()), str(value))
        if key in _IDENTITY
        else value
    )
