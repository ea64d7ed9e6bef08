"""Microsoft's client, as the tests of the ground use it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import ContainerClient

from tests.locker.azurite import ACCOUNT, KEY, Container
from tests.locker.proxy import Proxy

SHARED_KEY = {"account_name": ACCOUNT, "account_key": KEY}
CONTENT = bytes(range(256)) * 40


class Fixed:
    """A credential that has its token already."""

    def __init__(self, word: str) -> None:
        self._word = word

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._word, int(time.time()) + 3600)


def through(proxy: Proxy, container: Container, credential: Any = None, **options: Any) -> ContainerClient:
    """Microsoft's client, which goes through the proxy and tries everything once."""
    options = {"retry_total": 0, "read_timeout": 5} | options
    return ContainerClient(proxy.url, container.name, credential=credential or SHARED_KEY, **options)


def code_of(error: pytest.ExceptionInfo[HttpResponseError]) -> str:
    """Azure's word for what went wrong."""
    code = getattr(error.value, "error_code", "")
    return str(getattr(code, "value", code))
