"""Messages of the kernel as journald and /dev/kmsg give them: one record for each, whatever its text holds.

Written down from systemd 252 and Linux 6.18 on a VM where programs of such names had crashed. Order and number of the
keys of a record differ from one to the next. Sources of what differs elsewhere: systemd src/shared/logs-show.c (239, of
EL 8, puts blanks around colons and brackets), src/journal/journald-kmsg.c; Linux kernel/printk/printk.c
(msg_add_ext_text).
"""

from __future__ import annotations

import json
from typing import Literal

Style = Literal["252", "239"]


def record(message: str, at: float, device: str = "", facility: int = 0, style: Style = "252") -> str:
    """Return one line of `journalctl --output=json`, of epoch second `at`."""
    raw = message.encode("utf-8", "surrogateescape")
    moment = f"{at * 1_000_000:.0f}"
    fields: dict[str, str | list[int]] = {
        "__CURSOR": f"s=8f2c;i=1c3;b=647a;m={moment};t=6614;x=c3b7",
        "_BOOT_ID": "647aeb45015b4baaba09a35e51f73929",
        "MESSAGE": message if _printable(message) else list(raw),
        "__MONOTONIC_TIMESTAMP": "946808220",
        "__REALTIME_TIMESTAMP": moment,
        "SYSLOG_FACILITY": str(facility),
    }
    if device:
        fields["_KERNEL_DEVICE"] = device
    if style == "252":
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
    shown = (
        f'"{key}" : ' + (json.dumps(value, ensure_ascii=False) if isinstance(value, str) else f"[ {str(value)[1:-1]} ]")
        for key, value in fields.items()
    )
    return "{ " + ", ".join(shown) + " }"


def kmsg(message: str, seconds: float, device: str = "", facility: int = 0) -> str:
    """Return one record of /dev/kmsg, of so many seconds after the boot."""
    raw = message.encode("utf-8", "surrogateescape")
    text = "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\x{byte:02x}" for byte in raw)
    said = f" SUBSYSTEM=pci\n DEVICE={device}\n" if device else ""
    return f"{facility * 8 + 4},345,{seconds * 1_000_000:.0f},-;{text}\n{said}"


def _printable(text: str) -> bool:
    """Whether journalctl writes it as text: UTF-8 without control characters but line breaks and tabs."""
    return all(
        (ch >= " " or ch in "\n\t") and not "\x7f" <= ch <= "\x9f" and not "\ud800" <= ch <= "\udfff" for ch in text
    )
