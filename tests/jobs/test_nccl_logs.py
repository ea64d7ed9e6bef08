"""What the jobs read from logs of NCCL and nccl-tests, by public excerpts and by the forms that the sources print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from generator.files import assets
from tests.jobs import public_logs as logs

LIBRARY = assets.folder("recipes") / "lib"
AWKS = [name for name in ("gawk", "mawk") if shutil.which(name)]


@cache
def answers(awk: str, folder: Path, calls: tuple[str, ...]) -> list[str]:
    """What each call prints, all in one shell; the images of nodes have one awk or the other."""
    (folder / "bin").mkdir(exist_ok=True)
    link = folder / "bin" / "awk"
    if not link.exists():
        link.symlink_to(shutil.which(awk) or awk)
    script = "\n".join([f". {LIBRARY}/untagged.sh; . {LIBRARY}/nccl.sh", *(f"{call}; printf '\\0'" for call in calls)])
    environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return [answer.strip("\n") for answer in done.stdout.split("\0")[:-1]]


@pytest.fixture(scope="module", params=AWKS)
def awk(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def folder(awk: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp(awk)
    for excerpt in logs.EXCERPTS:
        (path / excerpt.name).write_text(excerpt.text, encoding="utf-8")
    return path


LAUNCHED = {
    # SLURM_LABELIO=1 or srun --label: the number of the task, as wide as the largest one
    "srun": lambda text: re.sub(r"^", " 0: ", text, flags=re.MULTILINE),
    "mpirun": lambda text: re.sub(r"^", "[1,0]<stdout>:", text, flags=re.MULTILINE),
    "prterun": lambda text: re.sub(r"^", "[prterun-host-123@1,0]<stdout>:", text, flags=re.MULTILINE),
    "tabs": lambda text: re.sub(r" {2,}", "\t", text),
}


def row_call(name: str, size: int, ranks: int = 0) -> str:
    values = "${measured_bytes}|${bus_out}|${wrong_out} ${wrong_in}|${wrong_kind}"
    return f'if tests_row {name} {size} {16 * ranks or 1}; then echo "{values}"; else echo "! ${{row_problem}}"; fi'


def test_excerpts_are_of_many_releases_and_each_has_an_address() -> None:
    assert len({excerpt.source for excerpt in logs.EXCERPTS}) == len(logs.EXCERPTS) >= 16
    assert all(excerpt.source.startswith("https://github.com/") for excerpt in logs.EXCERPTS)
    used = {each.log for each in logs.ALGORITHMS} | {each.log for each in logs.RANKS} | {each.log for each in logs.ROWS}
    assert used | {name for name, *_ in (*logs.FABRICS, *logs.VERSIONS, *logs.FOOTERS)} == {
        excerpt.name for excerpt in logs.EXCERPTS
    }


def test_the_algorithm_is_that_of_the_measured_size(awk: str, folder: Path) -> None:
    calls = tuple(
        f"nccl_algorithm {each.collective} {each.size} {each.share or each.size} {each.log}" for each in logs.ALGORITHMS
    )
    assert answers(awk, folder, calls) == [each.expected for each in logs.ALGORITHMS]


def test_ranks_that_are_not_one_test_of_all_gpus_are_found(awk: str, folder: Path) -> None:
    calls = tuple(f"tests_ranks {each.log} {each.ranks} {each.nodes}" for each in logs.RANKS)
    for each, answer in zip(logs.RANKS, answers(awk, folder, calls), strict=True):
        assert bool(answer) == bool(each.problem), (each, answer)
        assert each.problem in answer


def test_rows(awk: str, folder: Path) -> None:
    calls = tuple(row_call(each.log, each.size, each.ranks) for each in logs.ROWS)
    for each, answer in zip(logs.ROWS, answers(awk, folder, calls), strict=True):
        if each.problem:
            assert answer.startswith("! "), (each, answer)
            assert each.problem in answer
        else:
            assert answer == f"{each.measured}|{each.bus}|{each.wrong}|{each.kind}"


@pytest.mark.parametrize("launcher", LAUNCHED)
def test_what_a_launcher_adds_to_each_line_changes_no_answer(launcher: str, awk: str, folder: Path) -> None:
    rows = [each for each in logs.ROWS if not each.problem]
    calls = [(row_call("LOG", each.size, each.ranks), each.log) for each in rows]
    calls += [(f"tests_ranks LOG {each.ranks} {each.nodes}", each.log) for each in logs.RANKS]
    calls += [(f'tests_footer LOG "{label}"', name) for name, label, value in logs.FOOTERS if value]
    # Those that a launcher has marked already are read by the other tests.
    calls = [(call, name) for call, name in calls if name not in ("tagged", "labelled")]
    for name in {name for _, name in calls}:
        text = (folder / name).read_text(encoding="utf-8")
        (folder / f"{launcher}-{name}").write_text(LAUNCHED[launcher](text), encoding="utf-8")
    plain = answers(awk, folder, tuple(call.replace("LOG", name) for call, name in calls))
    assert not any(answer.startswith("!") for answer in plain)
    assert answers(awk, folder, tuple(call.replace("LOG", f"{launcher}-{name}") for call, name in calls)) == plain


def test_fabric_version_and_footer(awk: str, folder: Path) -> None:
    calls = (
        *(f"nccl_fabric {name}" for name, _ in logs.FABRICS),
        *(f"nccl_version {name}" for name, _ in logs.VERSIONS),
        *(f'tests_footer {name} "{label}" || echo none' for name, label, _ in logs.FOOTERS),
    )
    expected = [found for _, found in (*logs.FABRICS, *logs.VERSIONS)]
    assert answers(awk, folder, calls) == [*expected, *(value or "none" for *_, value in logs.FOOTERS)]


# ---------------------------------------------------------------- forms that no public log shows

SIZE = 8 * 1024**3
LINE = "node:1:1 [0] NCCL INFO"
FORMS = {
    # NVIDIA/nccl, src/include/nccl_common.h: the numbers of the algorithms until 2.23
    **{f"{LINE} {SIZE} Bytes -> Algo {number} proto 2 time 1.5": name for number, name in enumerate(
        ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"))},
    f"{LINE} AllReduce: {SIZE} Bytes -> Algo 2 proto 2 time 1.5": "COLLNET_DIRECT",
    # src/collectives.cc, ncclAlgoToString: the names since 2.24
    **{f"{LINE} AllReduce: {SIZE} Bytes -> Algo {name} proto SIMPLE channel{{Lo..Hi}}={{0..15}}": name
       for name in ("TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE")},
    # v2.30.7-1, src/scheduler/symmetric_sched.cc:356 and src/ce_coll.cc:1431-1435
    f"{LINE} AllReduce [Symmetric]: {SIZE} Bytes -> Kernel AllReduce_RSxLDMC_AGxSTMC nchannels 8 nthreads 512 nWorks 1":
        "SYMMETRIC",
    f"{LINE} AllReduce [Copy Engine]: {SIZE} Bytes -> cudaMemcpyBatchAsync": "COPY_ENGINE",
    f"{LINE} AllReduce [Hierarchical CE]: {SIZE} Bytes -> RMA proxy + CE": "COPY_ENGINE",
    # channels say what there is, not what was used
    f"{LINE} 24 coll channels, 24 collnet channels, 24 nvls channels, 32 p2p channels, 2 p2p channels per peer":
        "unknown",
    # other sizes, other collectives, other programs
    f"{LINE} AllReduce: {SIZE // 2} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "unknown",
    f"{LINE} AllGather: {SIZE} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "unknown",
    f"echo AllReduce: {SIZE} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "unknown",
    # names and numbers that nobody knows yet
    f"{LINE} {SIZE} Bytes -> Algo 7 proto 2 time 1.5": "unknown",
    f"{LINE} AllReduce: {SIZE} Bytes -> Algo QUANTUM proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "unknown",
    "": "unknown",
}  # fmt: skip
RING = f"{LINE} AllReduce: {SIZE} Bytes -> Algo RING proto SIMPLE channel{{Lo..Hi}}={{0..15}}\n"


def test_every_form_of_the_sources(awk: str, folder: Path) -> None:
    for number, line in enumerate(FORMS):
        (folder / f"form{number}").write_text(f"{line}\n" * 3, encoding="utf-8")
    calls = tuple(f"nccl_algorithm AllReduce {SIZE} {SIZE} form{number}" for number in range(len(FORMS)))
    found = dict(zip(FORMS, answers(awk, folder, calls), strict=True))
    assert found == FORMS


def test_two_algorithms_broken_lines_and_missing_logs_are_unknown(awk: str, folder: Path) -> None:
    (folder / "two").write_text(RING + RING.replace("RING", "TREE"), encoding="utf-8")
    (folder / "split.1").write_text(RING, encoding="utf-8")
    (folder / "split.2").write_text(RING.replace("RING", "NVLS"), encoding="utf-8")
    (folder / "same.1").write_text(RING, encoding="utf-8")
    (folder / "same.2").write_text(f"{LINE} Init COMPLETE\n", encoding="utf-8")
    # Written by a process that was killed: whole lines count as long as the broken one is none of this size.
    (folder / "cut").write_text(RING * 2 + RING[: RING.index(" proto")], encoding="utf-8")
    (folder / "early").write_text(RING * 2 + RING[: RING.index(str(SIZE)) + 4], encoding="utf-8")
    logs_of = ("two", "split.1 split.2", "same.1 same.2", "cut", "early", "none.*.log", "")
    calls = tuple(f"nccl_algorithm AllReduce {SIZE} {SIZE} {names}" for names in logs_of)
    assert answers(awk, folder, calls) == ["unknown", "unknown", "RING", "unknown", "RING", "unknown", "unknown"]


def test_the_bytes_of_a_line_are_those_of_all_ranks_or_of_one(awk: str, folder: Path) -> None:
    """NVIDIA/nccl, src/enqueue.cc: nBytes (v2.22.3-1:1669), then task->count x size of an element (v2.27.3-1:748)."""
    share = SIZE // 16
    lines = {
        f"{LINE} {SIZE} Bytes -> Algo 1 proto 2 time 1.5": "RING",
        f"{LINE} {share} Bytes -> Algo 1 proto 2 time 1.5": "unknown",
        f"{LINE} ReduceScatter: {SIZE} Bytes -> Algo 1 proto 2 time 1.5": "RING",
        f"{LINE} ReduceScatter: {share} Bytes -> Algo 1 proto 2 time 1.5": "unknown",
        f"{LINE} ReduceScatter: {share} Bytes -> Algo NVLS proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "NVLS",
        f"{LINE} ReduceScatter: {SIZE} Bytes -> Algo NVLS proto SIMPLE channel{{Lo..Hi}}={{0..15}}": "unknown",
        f"{LINE} ReduceScatter [Symmetric]: {share} Bytes -> Kernel ReduceScatter_LD nchannels 8": "SYMMETRIC",
        # It breaks off, and may be either.
        f"{LINE} ReduceScatter: {share} Bytes -> Algo NV": "unknown",
    }
    for number, line in enumerate(lines):
        (folder / f"bytes{number}").write_text(f"{line}\n", encoding="utf-8")
    calls = tuple(f"nccl_algorithm ReduceScatter {SIZE} {share} bytes{number}" for number in range(len(lines)))
    assert dict(zip(lines, answers(awk, folder, calls), strict=True)) == lines


def test_a_sweep_is_whole_or_has_a_problem(awk: str, folder: Path) -> None:
    head = "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"

    def rows(*sizes: int, bus: str = "1.5", end: str = "") -> str:
        lines = (f" {size} 1 float sum -1 1.0 1.0 {bus} 0 1.0 1.0 {bus} 0\n" for size in sizes)
        return head + "".join(lines) + end

    cases = {
        rows(1024, 2048, 4096): "",
        rows(1024, 2048): "no row for 4096 bytes as number 3",
        rows(1024, 4096): "no row for 2048 bytes as number 2",
        rows(1024, 2048, 2048, 4096): "no row for 4096 bytes",
        rows(1024, 2048, 4096, 8192): "4 rows instead of 3",
        rows(1024, 2048, 4096, bus="nan"): "no bandwidth for 1024 bytes",
        rows(1024, 2048, 4096, end=" 4096 1 float sum"): "1 rows that are not complete",
        head: "no row for 1024 bytes",
        "": "no row for 1024 bytes",
        "# Reducing maxBytes to 2100 due to memory limitation\n" + rows(1024, 2048): "",
        "# Reducing maxBytes to 9000 due to memory limitation\n" + rows(1024, 2048): "no row for 4096 bytes",
    }
    for number, text in enumerate(cases):
        (folder / f"sweep{number}").write_text(text, encoding="utf-8")
    # 16 bytes for each of 24 ranks are the least message that is divided among them.
    (folder / "divided").write_text(rows(0, 0, 384, 768, 1920), encoding="utf-8")
    calls = (
        *(f"sweep_problem sweep{number} 1024 4096 1" for number in range(len(cases))),
        "sweep_problem divided 128 2048 384",
        "sweep_problem divided 128 2048 16",
    )
    wanted = (*cases.values(), "", "no row for 128 bytes")
    for expected, answer in zip(wanted, answers(awk, folder, calls), strict=True):
        assert bool(answer) == bool(expected), (expected, answer)
        assert expected in answer


def test_nodes_are_connected_one_way_or_nobody_knows(awk: str, folder: Path) -> None:
    line = f"{LINE} comm 0x1 rank 0 nRanks 8 nNodes 2 localRanks 4 localRank 0 MNNVL"
    texts = {"mnnvl": f"{line} 1\n" * 2, "infiniband": f"{line} 0\n", "unknown": f"{line} 0\n{line} 1\n"}
    for name, text in texts.items():
        (folder / f"fabric.{name}").write_text(text, encoding="utf-8")
    calls = (*(f"nccl_fabric fabric.{name}" for name in texts), "nccl_fabric none.*.log", "nccl_fabric")
    assert answers(awk, folder, calls) == [*texts, "unknown", "unknown"]


def header(ranks: int = 16, hosts: int = 2, **changes: str) -> str:
    """Ranks as nccl-tests lists them, evenly on nodes; a change replaces the text of one line."""
    lines = [
        f"#  Rank {rank:2d} Group  0 Pid {rank} on hpc-{rank // (ranks // hosts) + 1} device  0 [0x{rank:x}] GPU"
        for rank in range(ranks)
    ]
    for number, line in changes.items():
        lines[int(number[1:])] = line
    return "\n".join(lines) + "\n"


def test_bad_headers(awk: str, folder: Path) -> None:
    cases = {
        header(): "",
        header(hosts=1): "ranks on 1 nodes instead of 2",
        header(ranks=14): "14 ranks instead of 16",
        header(_3="#  Rank  3 Group  0 Pid"): "1 damaged lines",
        header(_15="#  Rank 99 Group  0 Pid 15 on hpc-2 device  7 [0xf] GPU"): "16 ranks instead of 16",
        header(_8="#  Rank  8 Group  1 Pid 8 on hpc-2 device  0 [0x8] GPU"): "2 groups of ranks",
        header(_1="#  Rank  1 Group  0 Pid 1 on hpc-1 device  0 [0x0] GPU"): "1 ranks share a GPU",
        header().replace("Rank ", "Range "): "no ranks",
    }
    for number, text in enumerate(cases):
        (folder / f"header{number}").write_text(text, encoding="utf-8")
    calls = tuple(f"tests_ranks header{number} 16 2" for number in range(len(cases)))
    for expected, answer in zip(cases.values(), answers(awk, folder, calls), strict=True):
        assert bool(answer) == bool(expected), (expected, answer)
        assert expected in answer


def test_sizes_are_read_as_nccl_tests_reads_them(awk: str, folder: Path) -> None:
    calls = tuple(
        f"bytes_of {size} || echo bad" for size in ("16G", "8g", "512M", "4K", "1024", "010", "G", "8GB", "-1", "''")
    )
    found = answers(awk, folder, calls)
    assert found == [str(16 * 1024**3), str(SIZE), str(512 * 1024**2), "4096", "1024", "10", "bad", "bad", "bad", "bad"]


def test_a_row_counts_once_and_only_where_a_header_came_before(awk: str, folder: Path) -> None:
    (rows,) = (excerpt.text for excerpt in logs.EXCERPTS if excerpt.name == "gb200")
    row = f"  {SIZE} 2147483648 float sum -1 20299 423.16 834.57 0 20006 429.37 846.82 0\n"
    lowered = "# Reducing maxBytes to 5152702805 due to memory limitation\n"
    small = row.replace(str(SIZE), "5152702804")
    cases = {
        rows.replace("type", "kind"): "! 0 complete rows",
        rows + row: "! 2 complete rows",
        rows.replace("834.57      0 ", "834.57 "): "! 0 complete rows",
        rows.replace("834.57", "nan"): f"{SIZE}|nan|",
        rows.split(f"  {SIZE}")[0] + lowered + small: "5152702804|834.57|0 0|",
        # without the line that says so, another size is another measurement
        rows.split(f"  {SIZE}")[0] + small: "! 0 complete rows",
        # a limit that did not matter
        rows + "# Reducing maxBytes to 48247057066 due to memory limitation\n": f"{SIZE}|834.57|",
    }
    for number, text in enumerate(cases):
        (folder / f"rows{number}").write_text(text, encoding="utf-8")
    calls = tuple(row_call(f"rows{number}", SIZE) for number in range(len(cases)))
    for expected, answer in zip(cases.values(), answers(awk, folder, calls), strict=True):
        assert answer.startswith(expected), (expected, answer)
