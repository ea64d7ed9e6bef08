"""The file of known hosts of one deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.cyclecloud import host_keys
from generator.errors import CannotWrite

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG5vdCBhIHNlY3JldCwgb25seSBmb3IgdGhlIHRlc3Rz"


@pytest.fixture
def pin(monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the key that the server shows."""
    pin = host_keys.fingerprint(*KEY.split()) or ""
    monkeypatch.setattr(host_keys, "_scanned", lambda *_: [(pin, KEY)])
    return pin


def test_a_key_is_written_for_its_owner_alone(tmp_path: Path, pin: str) -> None:
    known = tmp_path / "ssh/known_hosts"
    host_keys.learn(known, "ours", [pin], "10.0.0.4", 22)
    assert known.read_text() == f"ours {KEY}\n"
    assert (known.stat().st_mode & 0o777, known.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(known.parent.iterdir()) == [known]
    assert host_keys.is_known(known, "ours", [pin])


def test_a_folder_that_cannot_be_written_is_no_bug(tmp_path: Path, pin: str) -> None:
    (tmp_path / "ssh").write_text("a file")
    with pytest.raises(CannotWrite, match=r"cannot write .*known_hosts"):
        host_keys.learn(tmp_path / "ssh/known_hosts", "ours", [pin], "10.0.0.4", 22)
