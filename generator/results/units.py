"""Units of figures."""

from __future__ import annotations

import re
from functools import lru_cache

_RATE = re.compile(r"(?:[kKMGTP]i?)?(?:[bB]|bit)(?:/s|/sec|ps)|[KMGTP]?FLOPS", re.ASCII)


@lru_cache(maxsize=2**10)
def is_rate(unit: str) -> bool:
    """Return True for bandwidths (GB/s, Gb/s, Gbps) and speeds of calculation (TFLOPS), where more is better."""
    return _RATE.fullmatch(unit) is not None
