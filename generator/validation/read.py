"""One file to a run or a proof: bounded reading, strict JSON, declared keys; whatever is wrong is an `Unusable`."""

from __future__ import annotations

from typing import Any

from msgspec.json import Decoder
from msgspec.structs import asdict

from ..results.decode import decoded, refuse_newer
from ..results.problems import Unusable
from .proof import Proof, ProofRecord
from .record import FORMAT, Record, Run

MAX_RECORD_BYTES = 2**26
"""The pairs of a thousand nodes have some 40 MiB."""
_RECORD_KEYS = frozenset(("job", "run", "checks", "verdict"))
"""An object that has none of these is someone else's."""
_PROOF_KEYS = frozenset(("prove", "gates", "replace"))
_RECORD, _PROOF = Decoder(Record), Decoder(ProofRecord)


def read(content: bytes, shown: str) -> Run | Proof:
    """Return what a file holds; `shown` is its path for messages. Raise Unusable."""
    found = decoded(content, _RECORD, _decoder_of)
    return (Run if isinstance(found, Record) else Proof)(**asdict(found), file=shown)


def _decoder_of(value: Any) -> Decoder[Any]:
    is_proof = isinstance(value, dict) and value.keys() >= _PROOF_KEYS
    if not is_proof and (not isinstance(value, dict) or not _RECORD_KEYS & value.keys()):
        raise Unusable("foreign", "it is JSON, but not the record of a run")
    refuse_newer(value, FORMAT)
    return _PROOF if is_proof else _RECORD
