"""Whom connections trust: what `requests` would, read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from requests import PreparedRequest, Request
from requests.adapters import DEFAULT_CA_BUNDLE_PATH

from generator.connections import Connections
from tests.locker.certificate import self_signed

URL = "https://management.example/x"


def pool(adapter: Connections, verify: bool | str, proxy: str = "") -> Any:
    """The pool of connections to one host, as `requests` prepares it."""
    request: PreparedRequest = Request("GET", URL).prepare()
    found: Any = adapter.get_connection_with_tls_context(request, verify, {"https": proxy} if proxy else {})
    adapter.cert_verify(found, URL, verify, None)
    return found


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    return str(self_signed(tmp_path).certificate)


def trusted(found: Any) -> int:
    """How many authorities its TLS context knows."""
    return int(found.conn_kw["ssl_context"].cert_store_stats()["x509_ca"])


def test_one_context_for_all_connections(bundle: str) -> None:
    adapter = Connections(hosts=2, at_once=4)
    first, again, usual = pool(adapter, bundle), pool(adapter, bundle), pool(adapter, True)
    assert first is again
    assert (first.ca_certs, first.ca_cert_dir, trusted(first)) == (None, None, 1)
    assert trusted(usual) == Path(DEFAULT_CA_BUNDLE_PATH).read_text().count("BEGIN CERTIFICATE")


def test_a_folder_of_authorities(tmp_path: Path) -> None:
    found = pool(Connections(hosts=2, at_once=4), str(tmp_path))
    assert (found.ca_certs, found.ca_cert_dir) == (None, None)


def test_a_proxy_that_speaks_tls_is_verified_with_the_same_file(bundle: str) -> None:
    adapter = Connections(hosts=2, at_once=4)
    assert pool(adapter, bundle, "https://proxy.example:3128").ca_certs == bundle
    assert pool(adapter, bundle, "http://proxy.example:3128").ca_certs is None


def test_what_cannot_be_read_fails_as_usual(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("")
    adapter = Connections(hosts=2, at_once=4)
    assert pool(adapter, str(tmp_path / "empty.pem")).ca_certs == str(tmp_path / "empty.pem")
    with pytest.raises(OSError, match="invalid path"):
        pool(adapter, str(tmp_path / "nowhere.pem"))
