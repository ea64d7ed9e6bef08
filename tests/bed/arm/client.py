"""Who speaks to the stand-in directly: signed in with the real library, one request at a time."""

from __future__ import annotations

from typing import Any

import requests

from .arm import Arm


class Client:
    """One who is signed in with the real library."""

    def __init__(self, arm: Arm) -> None:
        from azure.identity import DefaultAzureCredential

        self.arm, self.session = arm, requests.Session()
        with DefaultAzureCredential() as credential:
            token = credential.get_token("https://management.azure.com/.default").token
        self.session.headers["Authorization"] = f"Bearer {token}"

    def __call__(
        self, method: str, path: str, version: str | None, body: Any = None, **query: str
    ) -> requests.Response:
        address = path if path.startswith("https://") else f"{self.arm.url}{path}"
        options = ({"api-version": version} if version else {}) | query
        return self.session.request(method, address, params=options, json=body, timeout=20)

    def error(self, *request: Any, **query: str) -> tuple[int, str]:
        """Status and code of a refusal."""
        response = self(*request, **query)
        return response.status_code, response.json()["error"]["code"]
