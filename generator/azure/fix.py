"""Does what findings offer to have done: registers providers, accepts terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..records import record
from .check import Finding, Remedy
from .refusals import NotAsked, Refused
from .writer import Writer

Show = Callable[["Fixed"], None]


@record
class Fixed:
    """What became of one remedy; `reason` says why it was not done."""

    text: str
    reason: str | None

    def as_json(self) -> dict[str, str | bool | None]:
        """Plain data."""
        return {"what": self.text, "done": self.reason is None, "reason": self.reason}


def remedies(findings: Iterable[Finding]) -> tuple[Remedy, ...]:
    """What can be done about them, each once."""
    return tuple({each.remedy.text: each.remedy for each in findings if each.remedy is not None}.values())


def fix(wanted: Sequence[Remedy], writer: Writer, show: Show) -> tuple[Fixed, ...]:
    """Do all of it at once, and show each as it ends; one that fails keeps no other from being done."""

    def one(remedy: Remedy) -> Fixed:
        try:
            remedy.apply(writer)
            done = Fixed(remedy.text, None)
        except NotAsked as not_asked:
            done = Fixed(remedy.text, "; ".join(filter(None, (not_asked.reason, not_asked.hint))))
        except Refused as refused:
            done = Fixed(remedy.text, f"Azure refuses: {refused}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            done = Fixed(remedy.text, f"Azure's answer has another form than is documented ({type(error).__name__})")
        show(done)
        return done

    with ThreadPoolExecutor(max(len(wanted), 1)) as pool:
        return tuple(pool.map(one, wanted))
