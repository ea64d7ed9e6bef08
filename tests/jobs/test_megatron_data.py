"""The steps of gpt3-175b that prepare data, with the real tool of Megatron-LM: compressed documents in, tokens out.

Its source is taken from the git directories in `FRAMEWORK_SOURCES` (tests/jobs/option_names.py). Its imports need
PyTorch 2, triton, einops, regex, six, PyYAML and packaging: `MEGATRON_PYTHON` names a Python that has them, by default
`python3`. Debian's PyTorch 1.13 is too old: `torch.distributed` has no `_coalescing_manager` there.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.jobs import option_names
from tests.jobs.running import JobFolder, imported, job, job_folder, plan_with, settings_of
from tests.jobs.test_scripts import PASS

COMMIT = settings_of(plan_with(job("gpt3-175b")))["MEGATRON_COMMIT"]
IMPORTS = "import torch, triton, einops, regex, six, yaml, packaging; from torch.distributed import _coalescing_manager"

MERGES = ("h e", "t he", "Ġ the", "Ġ c")
SYMBOLS = (*"abcdefghijklmnopqrstuvwxyz.Ã©Ġ", "he", "the", "Ġthe", "Ġc", "<|endoftext|>")
"""A vocabulary of GPT-2's form: `Ġ` stands for a blank, `Ã©` for the two bytes of é, the last one ends a document."""
SHARDS: tuple[tuple[dict[str, object], ...], ...] = (
    ({"text": "the cat"}, {"text": "a book", "meta": {"redpajama_set_name": "RedPajamaBook"}}),
    ({"text": "see the café."}, {"text": ""}),
    ({"text": "the"},),
)
TOKENS = (
    [["the", "Ġc", "a", "t"], ["s", "e", "e", "Ġthe", "Ġc", "a", "f", "Ã", "©", "."], []],
    [["the"]],
)
"""What the documents of each chunk become: the book is not wanted, and a chunk takes two shards."""

READER = """
import json, sys
sys.path.insert(0, sys.argv[1])
from megatron.core.datasets.indexed_dataset import IndexedDataset
print(json.dumps([[document.tolist() for document in IndexedDataset(prefix)] for prefix in sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def source() -> bytes:
    """Megatron-LM at the commit that the recipe pins, as git packs it."""
    git = option_names.source("NVIDIA/Megatron-LM")
    if git is None:
        pytest.skip("FRAMEWORK_SOURCES names no folder with NVIDIA+Megatron-LM, a git copy of NVIDIA/Megatron-LM")
    packed = subprocess.run(
        ["git", "-C", str(git), "archive", "--format=tar", COMMIT, "megatron", "tools/preprocess_data.py"],
        capture_output=True, check=False,
    )  # fmt: skip
    if packed.returncode:
        pytest.skip(f"{git}: {packed.stderr.decode(errors='replace').strip()}")
    return packed.stdout


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("MEGATRON_PYTHON") or shutil.which("python3") or "python3"
    done = subprocess.run([found, "-c", IMPORTS], capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2]
        pytest.skip(f"{found} cannot run Megatron-LM ({why}); MEGATRON_PYTHON may name a Python that can")
    return found


def prepared(folder: JobFolder, stage: Path, source: bytes, python: str) -> None:
    """What the first step leaves, and the corpus as a mirror in a folder; real zstd and Python before the stand-ins."""
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        archive.extractall(stage / f"Megatron-LM-{COMMIT}", filter="data")
    bpe = stage / "tokenizers/gpt2"
    bpe.mkdir(parents=True)
    (bpe / "vocab.json").write_text(json.dumps({symbol: number for number, symbol in enumerate(SYMBOLS)}))
    (bpe / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{merge}\n" for merge in MERGES), encoding="utf-8")
    mirror = stage.parent / "mirror/chunk1"
    mirror.mkdir(parents=True)
    for number, documents in enumerate(SHARDS):
        text = "".join(json.dumps(document) + "\n" for document in documents)
        target = str(mirror / f"example_train_{number}.jsonl.zst")
        subprocess.run(["zstd", "--quiet", "-o", target], input=text.encode(), check=True)
    programs = stage.parent / "bin"
    programs.mkdir()
    (programs / "zstd").symlink_to(str(shutil.which("zstd")))
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
    (programs / "python3").chmod(0o755)
    folder.environment |= {
        "PATH": f"{programs}:{folder.environment['PATH']}",
        "SET_DATASET_URL": str(mirror.parent),
        "SET_DATASET_LAST_INDEX": "2",
        "SET_DATASET_FILES": "3",
        "SET_DATASET_FILES_PER_CHUNK": "2",
    }


def sequences_of(prefix: Path, documents: int) -> list[list[int]]:
    """A data set of Megatron-LM, read by its format: megatron/core/datasets/indexed_dataset.py, `_IndexWriter`."""
    index = prefix.with_suffix(".idx").read_bytes()
    magic, version, kind, sequences, bounds = struct.unpack_from("<9sQBQQ", index)
    assert (magic, version, bounds) == (b"MMIDIDX\0\0", 1, documents + 1)
    assert kind == 8, "uint16, for a vocabulary of less than 65,500"
    lengths = struct.unpack_from(f"<{sequences}i", index, 34)
    tokens = prefix.with_suffix(".bin").read_bytes()
    assert len(tokens) == 2 * sum(lengths)
    values = iter(struct.unpack(f"<{sum(lengths)}H", tokens))
    return [[next(values) for _ in range(length)] for length in lengths]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is not installed")
def test_compressed_documents_become_tokens(tmp_path: Path, source: bytes, python: str) -> None:
    folder, stage = imported(job_folder(tmp_path, plan_with(job("gpt3-175b", 2)))), tmp_path / "stage"
    prepared(folder, stage, source, python)
    for step in ("20-download.sh", "30-concatenate.sh", "40-preprocess.sh"):
        ran = folder.run(step)
        assert ran.returncode == PASS, ran.stdout + ran.stderr
    out = stage / "data/slimpajama/preprocessed"
    prefixes = [path.with_suffix("") for path in sorted(out.glob("*.bin"))]
    assert [path.name for path in prefixes] == [f"train_chunk_00{number}_text_document" for number in (0, 1)]
    number = {symbol: place for place, symbol in enumerate(SYMBOLS)}
    # An empty document has no tokens, and no end either.
    expected = [
        [[number[symbol] for symbol in (*document, "<|endoftext|>")] for document in chunk if document]
        for chunk in TOKENS
    ]
    found = [sequences_of(prefix, len(chunk)) for prefix, chunk in zip(prefixes, TOKENS, strict=True)]
    assert found == expected
    read = subprocess.run(
        [python, "-c", READER, str(stage / f"Megatron-LM-{COMMIT}"), *map(str, prefixes)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(read.stdout.splitlines()[-1]) == expected
