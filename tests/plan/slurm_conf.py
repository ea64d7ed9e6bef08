"""Read lines of slurmdbd.conf with Slurm's own parser: `python3 -m tests.plan.slurm_conf LIBRARY <JSON list of values`.

In a process of its own, since it is C. Source: src/common/parse_config.h of Slurm.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from pathlib import Path

_STRING = 1


class _Option(ctypes.Structure):
    _fields_ = (
        ("key", ctypes.c_char_p), ("type", ctypes.c_int), ("handler", ctypes.c_void_p), ("destroy", ctypes.c_void_p),
        ("line_options", ctypes.c_void_p),
    )  # fmt: skip


def library() -> Path | None:
    found = sorted(Path("/usr/lib").glob("*/slurm-wlm/libslurmfull*.so"))
    return found[0] if found else None


def _read(slurm: ctypes.CDLL, path: str) -> str | None:
    options = (_Option * 3)()
    for option, key in zip(options, (b"StoragePass", b"StoragePort"), strict=False):
        option.key, option.type = key, _STRING
    slurm.slurm_s_p_hashtbl_create.restype = ctypes.c_void_p
    table = ctypes.c_void_p(slurm.slurm_s_p_hashtbl_create(options))
    slurm.slurm_s_p_parse_file(table, None, ctypes.c_char_p(path.encode()), ctypes.c_bool(False), None)
    value = ctypes.c_char_p()
    slurm.slurm_s_p_get_string(ctypes.byref(value), ctypes.c_char_p(b"StoragePass"), table)
    return None if value.value is None else value.value.decode()


if __name__ == "__main__":
    slurm = ctypes.CDLL(sys.argv[1])
    read = []
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        for each in json.load(sys.stdin):
            file.seek(0)
            file.truncate()
            file.write(f"StoragePass={each}\nStoragePort=3306\n")
            file.flush()
            read.append(_read(slurm, file.name))
    json.dump(read, sys.stdout)
