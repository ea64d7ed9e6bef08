"""The log of the server's serial console, which can be read while its first boot goes on.

Azure gives the address of the log with a signature in it, which is a secret: used once, neither kept nor said.
Sources: https://learn.microsoft.com/rest/api/compute/virtual-machines/retrieve-boot-diagnostics-data,
https://learn.microsoft.com/azure/virtual-machines/boot-diagnostics
"""

from __future__ import annotations

from urllib.parse import urlsplit

from ..blobs.download import DownloadFailed, Limits, download
from ..plan.deployment import Plan
from .reader import Reader
from .refusals import NotAsked
from .requests import deployments

_LIMITS = Limits(answer_s=20, total_s=30, tries=1)
_MOST_BYTES = 16 * 2**20


def text(plan: Plan, reader: Reader) -> str:
    """What is in it until now; empty where the server has written nothing. Raises Refused and NotAsked."""
    if plan.server is None:
        raise NotAsked("the deployment has no server of its own")
    answer = reader.get_secret(deployments.SERIAL_LOG(group=plan.resource_group, name=plan.server.vm_name))
    address = answer.get("serialConsoleLogBlobUri")
    if not isinstance(address, str) or urlsplit(address).scheme != "https":
        raise NotAsked("Azure gives no address of the server's serial log")
    try:
        return download(address, _MOST_BYTES, _LIMITS).decode("utf-8", "replace")
    except DownloadFailed as failed:
        # No address in a message: the signature is in it.
        reason = "it leads elsewhere" if "://" in failed.reason else failed.reason
    raise NotAsked(f"the server's serial log: {reason}")
