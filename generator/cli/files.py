"""Write one file of a verb that makes a single file."""

from __future__ import annotations

import os
from pathlib import Path

from ..errors import CannotWrite


def write_file(path: Path, text: str, *, replace: bool) -> None:
    """Write the file as a whole or not at all. Without `replace`, an existing one is refused."""
    temporary = path.with_name(f".{path.name}.tmp-{os.urandom(4).hex()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        if replace:
            temporary.replace(path)
        else:
            # A link, other than a rename, fails if the name is taken, even if it was taken just now.
            os.link(temporary, path)
            temporary.unlink()
    except FileExistsError:
        temporary.unlink(missing_ok=True)
        raise CannotWrite(f"{path} exists and is left alone", "choose another name, or --out FILE") from None
    except OSError as error:
        if os.path.lexists(temporary):
            temporary.unlink()
        raise CannotWrite(
            f"cannot write {path}: {(error.strerror or 'error').lower()}", "choose another --out"
        ) from error
