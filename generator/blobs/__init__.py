"""Third-party files that nodes need ("blobs"): pinned by sha256, fetched on request, carried when they are there.

What is pinned is in `generator/catalog/blobs.json`; a new entry is only data. Each has:

| key | meaning |
|---|---|
| `file` | name in the locker, below `projects/<project>/blobs/`; holds the version, since blobs there have no other |
| `project` | shipped project whose `project.ini` lists the file below `[blobs]`; `tests`: only tests build it |
| `version`, `repository`, `commit` | what it is: release or `git describe`, owner/name, 40 hex digits |
| `url` | https address of the source archive of the commit |
| `license` | SPDX expression |
| `members` | globs of what is taken of the archive, part by part (`*` stops at `/`) |
| `sha256`, `size_bytes` | of the file as it is in the store, in the locker and on the node |
| `used_for` | one sentence for people |
| `without` | what a node does when the file is missing; a clause such as "nodes run no checks of their own" |
| `needed` | `always`; `without_built_in_containers`: where the Slurm project brings no enroot and pyxis; `by_tests` |

Forges do not promise that the archive of a commit keeps its bytes, so a source archive is never pinned as it comes:
`archive.normalised` takes the wanted members and writes them as a plain tar that depends on nothing but their names
and contents, and the digest of that tar is pinned. It is not compressed, because the deployment compresses it anyway.

`pins` reads the catalogue, `archive` repacks, `store` keeps what was fetched, `download` is the only module that uses
the network, `fetch` gets a blob from there or from a path. A build never fetches.
"""

from ..catalog.pinned_files import Blob
from .pins import pinned, pinned_of
from .store import Found, Store, Unusable, store_of

__all__ = ["Blob", "Found", "Store", "Unusable", "pinned", "pinned_of", "store_of"]
