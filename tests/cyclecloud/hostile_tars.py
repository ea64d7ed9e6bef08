"""Archives as a hostile host sends them, and what becomes of each: `python3 -m tests.cyclecloud.hostile_tars FOLDER`.

It needs nothing but the standard library, so that any Python that we allow can be asked.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from pathlib import Path

from generator.cyclecloud.unpack import CutOff, Limits, Refused, unpack

LIMITS = Limits(file_bytes=2000, bytes=10_000, members=20, depth=5)
END = bytes(1024)
MAGIC = b"ustar  \0"


def member(
    name: bytes, content: bytes = b"", kind: bytes = b"0", *, link: bytes = b"", size: bytes | None = None,
    magic: bytes = MAGIC, prefix: bytes = b"", mode: bytes = b"0000644\0", time: bytes = b"00000000001\0",
) -> bytes:  # fmt: skip
    """One member by hand, with a right checksum whatever is in it."""
    fields = (
        name.ljust(100, b"\0"), mode, b"0000000\0" * 2, size or b"%011o\0" % len(content), time, b" " * 8,
        kind, link.ljust(100, b"\0"), magic, bytes(80), prefix.ljust(167, b"\0"),
    )  # fmt: skip
    header = b"".join(fields)
    assert len(header) == 512
    header = header[:148] + b"%06o\0 " % sum(header) + header[156:]
    return header + content + bytes(-len(content) % 512)


def long_name(name: bytes) -> bytes:
    """A file whose name has a member of its own, as GNU tar writes it."""
    return member(b"././@LongLink", name, b"L") + member(b"x", b"x")


def written(*members: tuple[str, bytes, str], form: int = tarfile.GNU_FORMAT, **pax: str) -> bytes:
    """By Python's own tarfile: (name, kind, target of a link or content)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for name, kind, text in members:
            entry = tarfile.TarInfo(name)
            entry.type, entry.pax_headers = kind, pax
            if kind == tarfile.REGTYPE:
                entry.size = len(text)
                archive.addfile(entry, io.BytesIO(text.encode()))
            else:
                entry.linkname = text
                archive.addfile(entry)
    return buffer.getvalue()


def _realpath_overflow() -> bytes:
    """CVE-2025-4517: folders and links so long that realpath gives up, and with it the filter of `tarfile`.

    Source: https://github.com/google/security-research/security/advisories/GHSA-hgqp-3mmf-7h8f
    """
    long = "d" * 247
    members: list[tuple[str, bytes, str]] = [("content", tarfile.DIRTYPE, "")]
    path = "content"
    for step in "abcdefghijklmnop":
        members.append((f"{path}/{long}", tarfile.DIRTYPE, ""))
        members.append((f"{path}/{step}", tarfile.SYMTYPE, long))
        path = f"{path}/{step}"
    members.append((f"{path}/{'l' * 254}", tarfile.SYMTYPE, "../" * 16))
    # Behind what realpath follows no longer: out of "content", and out of the folder beside whose "victim" it lies.
    link = f"{path.removeprefix('content/')}/{'l' * 254}/../.."
    members.append(("content/escape", tarfile.SYMTYPE, link))
    members.append(("content/again", tarfile.LNKTYPE, "content/escape/victim"))
    members.append(("content/again", tarfile.REGTYPE, "written"))
    return written(*members)


TOP = member(b"content", kind=b"5")
FILE = member(b"content/good", b"x")
DIR, SYM, LNK, REG = tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.REGTYPE

HOSTILE: dict[str, tuple[bytes, str]] = {
    "absolute": (TOP + member(b"/tmp/outside", b"x") + END, "a name that leads out"),
    "up": (TOP + member(b"content/../../outside", b"x") + END, "a name that leads out"),
    "up in a prefix": (
        TOP + member(b"outside", b"x", magic=b"ustar\x0000", prefix=b"content/..") + END, "a name that leads out",
    ),
    "up in a long name": (
        TOP + long_name(b"content/" + b"a/../" * 30 + b"../../outside\0") + END,
        "a name that leads out",
    ),
    "NUL in a long name": (
        TOP + long_name(b"content/a\0b" + b"c" * 120 + b"\0") + END,
        "a name that leads out",
    ),
    "a name of its own": (member(b"outside", b"x") + END, "a name that leads out"),
    "a folder up": (TOP + member(b"content/..", kind=b"5") + END, "a name that leads out"),
    "a dot": (TOP + member(b"content/./x", b"x") + END, "a name that leads out"),
    "two slashes": (TOP + member(b"content//x", b"x") + END, "a name that leads out"),
    "a file that ends with a slash": (TOP + member(b"content/x/", b"x") + END, "a name that leads out"),
    "no name": (member(b"", b"x") + END, "a name that leads out"),
    "through a link": (
        written(("content", DIR, ""), ("content/d", SYM, "../.."), ("content/d/outside", REG, "x")),
        "a file whose folder is missing",
    ),
    "through a link to an absolute folder": (
        written(("content", DIR, ""), ("content/d", SYM, "/tmp"), ("content/d/outside", REG, "x")),
        "a file whose folder is missing",
    ),
    "through two links": (
        written(("content", DIR, ""), ("content/a", SYM, "."), ("content/a/b", SYM, ".."), ("content/a/b/o", REG, "x")),
        "a file whose folder is missing",
    ),
    "realpath overflow": (_realpath_overflow(), "a file whose folder is missing"),
    "the top is a link": (written(("content", SYM, "/etc")), "a link instead of a file or folder"),
    "the top is a hard link": (written(("content", LNK, "/etc/passwd")), "a link instead of a file or folder"),
    "the top is a pipe": (written(("content", tarfile.FIFOTYPE, "")), "a pipe instead of a file or folder"),
    "a folder that is a file": (TOP + FILE + member(b"content/good/x", b"x") + END, "a file whose folder is missing"),
    "a folder in the place of a file": (TOP + FILE + member(b"content/good", kind=b"5") + END, "two files of one name"),
    "a file in the place of a folder": (TOP + member(b"content", b"x") + END, "two files of one name"),
    "a file twice": (TOP + FILE + FILE + END, "two files of one name"),
    "a folder twice": (TOP + TOP + END, "two files of one name"),
    "a path in a pax header": (
        written(("content", DIR, ""), ("content/x", REG, "x"), form=tarfile.PAX_FORMAT, path="../outside"),
        "a member of the kind 'x'",
    ),
    "a size in a global pax header": (
        TOP + member(b"g", b"14 size=99999\n", b"g") + FILE + END, "a member of the kind 'g'",
    ),
    "sparse": (TOP + member(b"content/s", b"x", b"S") + END, "a member of the kind 'S'"),
    "a volume": (TOP + member(b"content/s", kind=b"V") + END, "a member of the kind 'V'"),
    "a renamed file": (TOP + member(b"content/s", b"x", b"N") + END, "a member of the kind 'N'"),
    "a link with a size": (TOP + member(b"content/l", b"x", b"2", link=b"y") + END, "a link or folder with a size"),
    "a folder with a size": (TOP + member(b"content/l", b"x", b"5") + END, "a link or folder with a size"),
    "a negative size": (TOP + member(b"content/x", size=b"\xff" * 12) + END, "an archive that is damaged"),
    "a size that is no number": (TOP + member(b"content/x", size=b"-0000000001\0") + END, "an archive that is damaged"),
    "a huge size": (TOP + member(b"content/x", size=b"\x80" + b"\xff" * 11) + END, "more bytes than are taken"),
    "a wrong checksum": (TOP[:148] + b"000000\0 " + TOP[156:] + END, "an archive that is damaged, or none"),
    "no archive": (b"bash: welcome\n" * 100, "an archive that is damaged, or none"),
    "many": (TOP + b"".join(member(b"content/%d" % n) for n in range(30)) + END, "more than 20 files"),
    "many targets of one link": (TOP + member(b"L", b"x" * 200, b"K") * 30 + END, "an archive that is damaged"),
    "two long names of one file": (
        TOP + member(b"L", b"content/a\0", b"L") + long_name(b"content/b\0") + END, "an archive that is damaged",
    ),
    "an endless name": (TOP + member(b"L", b"x" * 10_001, b"L") + FILE + END, "more bytes than are taken"),
    "large": (
        TOP + b"".join(member(b"content/%d" % n, bytes(1900)) for n in range(9)) + END, "more bytes than are taken",
    ),
    "more behind the end": (TOP + FILE + END + member(b"content/late", b"x"), "something behind the end"),
    "endless zeros": (TOP + FILE + bytes(50_000), "something behind the end"),
}  # fmt: skip

PARTLY: dict[str, tuple[bytes, list[str]]] = {
    "links": (
        written(("content", DIR, ""), ("content/s", SYM, "/etc"), ("content/h", LNK, "/etc/passwd")),
        ["left behind (a link): s, h"],
    ),
    "devices and pipes": (
        TOP + member(b"content/c", kind=b"3") + member(b"content/b", kind=b"4") + member(b"content/p", kind=b"6") + END,
        ["left behind (a device): c, b", "left behind (a pipe): p"],
    ),
    "odd characters": (
        TOP + member(b"content/a\nb") + member(b"content/\x1b[2J") + member(b"content/a\\..\\b", b"x") + END,
        ["left behind (control characters or a backslash in its name): a\\nb, \\x1b[2J, a\\\\..\\\\b"],
    ),
    "a line that runs backwards": (
        TOP + member("content/\u202egpj.exe".encode(), b"x") + END,
        ["left behind (control characters or a backslash in its name): \\u202egpj.exe"],
    ),
    "bytes that are no text": (
        TOP + member(b"content/\xff\xfe", b"x") + END, ["left behind (its name is not UTF-8): \\\\xff\\\\xfe"],
    ),
    "a folder with an odd name": (
        TOP + member(b"content/a\tb", kind=b"5") + member(b"content/a\tb/c", b"x") + END,
        [
            "left behind (control characters or a backslash in its name): a\\tb",
            "left behind (its folder was left behind): a\\tb/c",
        ],
    ),
    "too large": (
        TOP + member(b"content/big", bytes(3000)) + FILE + END, ["left behind (larger than 1.86265e-06 GiB): big"],
    ),
    "deep": (
        TOP + b"".join(member(b"content" + b"/a" * n, kind=b"5") for n in range(1, 9)) + FILE + END,
        ["left behind (more than 5 folders in each other): a/a/a/a/a, a/a/a/a/a/a, a/a/a/a/a/a/a and 1 more"],
    ),
    "very long names": (
        TOP + long_name(b"content/" + b"a/" * 2000) + long_name(b"/" * 2050) + FILE + END,
        [f"left behind (a path of more than 2048 bytes): {'a/' * 100}..., {'/' * 200}..."],
    ),
    "a long part of a name": (
        TOP + long_name(b"content/" + b"a" * 256 + b"\0") + FILE + END,
        [f"left behind (a name of more than 255 bytes): {'a' * 200}..."],
    ),
    "a file from before 1970": (TOP + member(b"content/old", b"x", time=b"\xff" * 11 + b"\xfb") + END, []),
    "the long target of a link": (
        TOP + member(b"L", b"t" * 150 + b"\0", b"K") + member(b"content/l", kind=b"2", link=b"t" * 100) + END,
        ["left behind (a link): l"],
    ),
}  # fmt: skip


def outcome(content: bytes, folder: Path) -> dict[str, object]:
    """Unpack it into a new folder; what was said, and what lies there in the end."""
    folder.mkdir()
    try:
        said: object = unpack(io.BytesIO(content), folder, "content", LIMITS)
    except Refused as refused:
        said = f"refused: {refused}"
    except CutOff:
        said = "cut off"
    found = [Path(parent, name) for parent, folders, files in os.walk(folder) for name in [*folders, *files]]
    odd = [str(path) for path in found if path.is_symlink() or not (path.is_file() or path.is_dir())]
    return {
        "said": said,
        "odd": odd,
        "files": sorted(str(each.relative_to(folder)) for each in found if each.is_file()),
    }


def outcomes(folder: Path) -> dict[str, dict[str, object]]:
    """Of all archives of this page."""
    archives = {name: content for name, (content, _) in (HOSTILE | PARTLY).items()}
    return {name: outcome(content, folder / str(index)) for index, (name, content) in enumerate(archives.items())}


if __name__ == "__main__":
    json.dump({"python": sys.version.split()[0], "outcomes": outcomes(Path(sys.argv[1]))}, sys.stdout)
