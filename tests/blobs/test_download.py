"""Downloads from a server that does what servers, proxies and networks do on a bad day."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest

from generator.blobs.download import DownloadFailed, Limits, download
from generator.version import __version__
from tests.blobs.server import (
    Answer,
    Server,
    chunked,
    drip,
    endless,
    garbage,
    reset,
    serving,
    silence,
    status,
    whole,
)

URL = "https://forge.example/tool.tar.gz"
CONTENT = bytes(range(256)) * 500


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as started:
        yield started


def get(server: Server, limit: int = 10**6, **changes: object) -> bytes:
    return download(URL, limit, server.limits(**changes))


def failure(server: Server, limit: int = 10**6, **changes: object) -> str:
    with pytest.raises(DownloadFailed) as caught:
        get(server, limit, **changes)
    return caught.value.reason


@pytest.mark.parametrize("answer", [whole(CONTENT), chunked(CONTENT)])
def test_a_whole_file(server: Server, answer: Answer) -> None:
    server.answers = [answer]
    seen: list[tuple[int, int | None]] = []
    assert download(URL, len(CONTENT), server.limits(), lambda *figures: seen.append(figures)) == CONTENT
    assert seen[-1][0] == len(CONTENT)
    assert server.asked == ["/tool.tar.gz"]
    assert server.agents == [f"cycleforge/{__version__}"]


@pytest.mark.parametrize(
    "answer", [status(500), status(503, Retry_After="0"), status(429), reset, garbage, whole(CONTENT[:99], promise=100),
               chunked(CONTENT, is_complete=False)],
)  # fmt: skip
def test_what_may_pass_is_tried_again(server: Server, answer: Answer) -> None:
    server.answers = [answer, answer, whole(CONTENT)]
    assert get(server) == CONTENT
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(503), "the server answered HTTP 503 Service Unavailable (3 tries)"),
        (whole(CONTENT[:99], promise=100), "the connection ended after 99 of 100 bytes (3 tries)"),
        (silence, "127.0.0.1 did not answer for 0.2 s (3 tries)"),
        (reset, "no connection to 127.0.0.1: Connection reset by peer (3 tries)"),
        (garbage, "no connection to 127.0.0.1: 220 mail.example ESMTP"),
    ],
)
def test_but_not_for_ever(server: Server, answer: Answer, reason: str) -> None:
    server.answers = [answer]
    # Only silence needs a short limit; the others would not keep it on a busy machine.
    assert failure(server, answer_s=0.2 if answer is silence else 60).startswith(reason)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (status(404), "the server answered HTTP 404 Not Found: the file is no longer there"),
        (status(410), "the server answered HTTP 410 Gone: the file is no longer there"),
        (status(403), "the server answered HTTP 403 Forbidden; a proxy may be in between"),
        (status(407), "the server answered HTTP 407 Proxy Authentication Required; a proxy may be in between"),
        (status(418), "the server answered HTTP 418 I'm a Teapot"),
        (whole(b"", promise=10**9), "the server offers 1000000000 bytes, more than the 1000000 expected"),
        (endless, "the server sends more than the 1000000 bytes expected"),
        (status(302, Location="ftp://forge.example/x"), "the address is not https: ftp://forge.example/x"),
        (
            status(302, Location="file:///etc/passwd"),
            "the server answered HTTP 302 Found - Redirection to url 'file:///etc/passwd' is not allowed",
        ),
    ],
)
def test_what_will_not_pass_is_asked_once(server: Server, answer: Answer, reason: str) -> None:
    server.answers = [answer]
    assert failure(server) == reason
    assert len(server.asked) == 1


def test_a_trickle_ends_with_the_time_for_all_tries(server: Server) -> None:
    server.answers = [drip]
    assert failure(server, total_s=0.3).startswith("not complete after 0.3 s")


def test_redirects_are_followed_and_end(server: Server) -> None:
    server.answers = [status(302, Location="/elsewhere"), whole(CONTENT)]
    assert get(server) == CONTENT
    assert server.asked == ["/tool.tar.gz", "/elsewhere"]
    server.answers = [status(302, Location="/elsewhere")]
    assert failure(server).startswith("the server answered HTTP 302")


def test_only_https_is_asked(server: Server) -> None:
    server.answers = [whole(CONTENT)]
    with pytest.raises(DownloadFailed, match="the address is not https: http://"):
        download(f"{server.url}/tool", 10**6, Limits())
    assert server.asked == []


def test_a_server_without_tls(server: Server) -> None:
    with pytest.raises(DownloadFailed, match=r"no connection to 127\.0\.0\.1: .*(SSL|EOF)"):
        download(server.url.replace("http:", "https:") + "/tool", 10**6, Limits(tries=1))


def test_a_certificate_that_is_not_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate in certificate chain"

    def refuse(*_: object) -> NoReturn:
        raise urllib.error.URLError(error)

    monkeypatch.setattr(urllib.request.HTTPSHandler, "https_open", refuse)
    with pytest.raises(DownloadFailed) as caught:
        download(URL, 10**6, Limits(pause_s=60))
    assert caught.value.reason == (
        "the certificate of forge.example is not accepted: self-signed certificate in certificate chain"
    )
    assert caught.value.hint is not None
    assert "SSL_CERT_FILE" in caught.value.hint


def test_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that is not known is not asked for again; a resolver that is away is."""
    asked: list[object] = []
    reasons: dict[int, Any] = {
        socket.EAI_NONAME: ("Name or service not known", 1),
        socket.EAI_AGAIN: ("Temporary failure in name resolution (2 tries)", 2),
    }
    for code, (reason, count) in reasons.items():

        def refuse(*arguments: object, code: int = code, reason: str = reason, **_: object) -> NoReturn:
            asked.append(arguments)
            raise socket.gaierror(code, reason.partition(" (")[0])

        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        asked.clear()
        with pytest.raises(DownloadFailed) as caught:
            download(URL, 10**6, Limits(tries=2, pause_s=0.01))
        assert (caught.value.reason, len(asked)) == (f"no connection to forge.example: {reason}", count)


def test_nobody_listens(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/x"
        assert "Connection refused (3 tries)" in failure(server, address=lambda _: address)


def test_the_proxy_of_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    server.answers = [whole(CONTENT)]
    assert get(server, address=lambda _: "http://forge.example/tool.tar.gz") == CONTENT
    assert server.asked == ["http://forge.example/tool.tar.gz"]
