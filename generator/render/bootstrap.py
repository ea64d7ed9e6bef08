"""What runs on the CycleCloud server at its first boot, and the archive that carries it inside the deployment.

Azure's custom data holds 64 KiB, which is too little for projects with blobs. So it holds a fixed text, and everything
else travels as one archive, cut into chunks: each is an output of one nested deployment, which the server reads with
its own identity. How much fits is a limit of the deployment as a whole, which rule E1801 watches.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..files import assets
from ..files.file import File, Files, digest, json_file, text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ..plan.cluster import SlurmPlan
    from ..plan.deployment import Plan

CHUNK_BYTES = 64 * 1024
"""Bytes of one payload chunk, well below what Bicep loads as base64 (`loaded_file` of the catalogue's limits)."""

FOLDER = PurePosixPath("bootstrap")
PAYLOAD = FOLDER / "payload"
LIST = FOLDER / "payload.txt"
CLOUD_INIT = FOLDER / "cloud-init.yaml"
START = FOLDER / "start.sh"
NOT_CARRIED = (CLOUD_INIT, START)
"""They reach the server on their own: as custom data and as the extension's script."""


def render(plan: Plan, carried: Files, late: Mapping[str, str]) -> Files:
    """The files below `bootstrap/` for the server that the deployment creates; nothing for an existing server.

    `carried` are the rendered files that travel to the server (`cluster/…`, `projects/…`). `late` maps a template
    parameter to the fact, or `secret:<name>`, that fills it on the server.
    """
    if plan.server is None:
        return {}
    files = {path: _source(path) for path in _sources()}
    files[FOLDER / "bootstrap.json"] = json_file(configuration(plan, late))
    packed = carried | {path: file for path, file in files.items() if path not in NOT_CARRIED}
    chunks = _chunks(archive(packed))
    files[LIST] = text(
        "# What the deployment carries to the server, with bytes and sha256: the pieces, which joined are a tar.gz,\n"
        f"{_listed(chunks)}# and what is in it.\n{_listed(packed)}"
    )
    return files | chunks


def _listed(files: Files) -> str:
    lines = (
        "\t".join((str(path), str(len(file.content)), digest(file.content))) for path, file in sorted(files.items())
    )
    return "".join(f"{line}\n" for line in lines)


def payload_chunks(files: Files) -> tuple[str, ...]:
    """Paths of the chunks, relative to the deployment folder, in order."""
    return tuple(str(path) for path in sorted(files) if path.parent == PAYLOAD)


def payload_sha256(files: Files) -> str:
    """sha256 of the joined chunks: the fact `payloadSha256`, by which the server knows the archive."""
    return hashlib.sha256(_payload(files)).hexdigest()


def content_hash(files: Files) -> str:
    """sha256 over everything that the extension runs; when it changes, the extension has to run again."""
    return hashlib.sha256(files[START].content + b"\0" + _payload(files)).hexdigest()


def _payload(files: Files) -> bytes:
    return b"".join(files[PurePosixPath(path)].content for path in payload_chunks(files))


def configuration(plan: Plan, late: Mapping[str, str]) -> dict[str, object]:
    """`bootstrap.json`: what the program on the server does for this deployment. No secret is in it.

    ValueError without a new server.
    """
    server, slurm = plan.server, plan.slurm
    if server is None:
        raise ValueError("the deployment creates no server")
    key = plan.admin.ssh_public_key
    pinned = slurm if slurm and slurm.pin_project else None
    return {
        "schema": 1,
        "name": plan.name,
        "admin": {"username": plan.admin.username, "sshPublicKey": key if isinstance(key, str) else None},
        "server": {
            "httpPort": server.http_port,
            "httpsPort": server.https_port,
            "clusterPort": server.cluster_port,
            "javaHeapMb": server.java_heap_mb,
        },
        "account": plan.locker.cyclecloud_account,
        "locker": plan.locker.locker_name,
        "slurmProject": ({"version": pinned.project_version, "url": pinned.project_url} if pinned else None),
        "projects": [
            {"name": project.name, "version": project.version, "digest": project.digest} for project in plan.projects
        ],
        "cluster": _cluster(slurm, late) if slurm else None,
        "secrets": {secret.parameter: secret.prompt for secret in plan.secrets},
        "secretRules": {
            secret.parameter: [[rule.text, rule.pattern] for rule in secret.needs] for secret in plan.secrets
        },
        "limits": {"totalSeconds": server.boot_limit_s, "uploadSeconds": server.upload_limit_s} | _awaited_name(plan),
    }


def _awaited_name(plan: Plan) -> dict[str, object]:
    if plan.server is None or plan.network.blob_dns_zone != "none":
        return {}
    return {"lockerNameSeconds": plan.server.name_limit_s}


def _cluster(slurm: SlurmPlan, late: Mapping[str, str]) -> dict[str, object]:
    name = slurm.cluster_name
    return {
        "name": name,
        "templateName": slurm.template_name,
        "template": f"cluster/{name}.txt",
        "parameters": f"cluster/{name}.params.json",
        "late": dict(sorted(late.items())),
        "start": slurm.start_cluster,
        "machineTypes": _machine_types(slurm),
    }


def _machine_types(slurm: SlurmPlan) -> dict[str, str]:
    """Node or node array of the template → VM size.

    The server asks CycleCloud for the record of one size; node arrays of several have none of that form.
    """
    sizes = {"scheduler": slurm.scheduler.hardware.name, "login": slurm.login.hardware.name}
    return sizes | {array.name: array.vm_size for array in slurm.node_arrays if not array.sizes}


def _sources() -> tuple[PurePosixPath, ...]:
    folder = assets.folder(str(FOLDER))
    program = sorted(path.name for path in (folder / "cycleforge_bootstrap").glob("*.py"))
    names = ["cloud-init.yaml", "cycleforge-bootstrap", "cycleforge-bootstrap.service", "start.sh"]
    return (*(FOLDER / name for name in names), *(FOLDER / "cycleforge_bootstrap" / name for name in program))


def _source(path: PurePosixPath) -> File:
    source: Path = assets.root() / path
    # Not the mode on disk: a checkout or a wheel may have lost it.
    return File(source.read_bytes(), executable=path.name in ("cycleforge-bootstrap", "start.sh"))


def archive(files: Files) -> bytes:
    """A tar.gz that depends on nothing but paths, contents and the executable bit."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, file in sorted(files.items()):
            entry = tarfile.TarInfo(str(path))
            entry.size = len(file.content)
            entry.mode = 0o755 if file.executable else 0o644
            tar.addfile(entry, io.BytesIO(file.content))
    return _gzip(buffer.getvalue())


def _gzip(content: bytes) -> bytes:
    """gzip with a header of our own: releases of Python write different ones (time, operating system)."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = packer.compress(content) + packer.flush()
    size = len(content) & 0xFFFFFFFF
    return (
        b"\x1f\x8b\x08\x00\0\0\0\0\x02\xff"
        + body
        + zlib.crc32(content).to_bytes(4, "little")
        + size.to_bytes(4, "little")
    )


def _chunks(content: bytes) -> Files:
    pieces = [content[start : start + CHUNK_BYTES] for start in range(0, len(content), CHUNK_BYTES)]
    return {PAYLOAD / f"payload-{number:02}.bin": File(piece) for number, piece in enumerate(pieces)}
